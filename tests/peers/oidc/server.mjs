// An authorization server on the npm package oidc-provider: `node server.mjs PORT OPTIONS`.
// OPTIONS is a JSON object: `modules`, the folder of the packages; `resource`, for whom tokens are made;
// `jwks`, the public keys of the client "machine"; `nonces`, whether proofs need one; `ttl`, of tokens, in
// seconds. Says "ready" when it listens. Anybody may log in, by any name, and allows everything.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const port = Number(process.argv[2]);
const options = JSON.parse(process.argv[3]);
const { default: Provider } = await import(pathToFileURL(`${options.modules}/oidc-provider/lib/index.js`));

const scopes = ['read', 'write'];
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const signing = { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256', kid: 'signing' };

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'machine',
      token_endpoint_auth_method: 'private_key_jwt',
      token_endpoint_auth_signing_alg: 'ES256',
      jwks: options.jwks,
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
      scope: scopes.join(' '),
    },
    {
      client_id: 'with secret',
      client_secret: 'of:it/and more',
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
      scope: scopes.join(' '),
    },
  ],
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  jwks: { keys: [signing] },
  cookies: { keys: [randomBytes(16).toString('hex')] },
  scopes: ['openid', 'offline_access', ...scopes],
  responseTypes: ['code'],
  clientAuthMethods: ['none', 'client_secret_basic', 'private_key_jwt'],
  enabledJWA: { clientAuthSigningAlgValues: ['ES256'], dPoPSigningAlgValues: ['ES256'] },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    clientCredentials: { enabled: true },
    revocation: { enabled: true },
    dPoP: {
      enabled: true,
      nonceSecret: randomBytes(32),
      requireNonce: () => options.nonces,
    },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => {
        if (resource !== options.resource) throw new Error('unknown resource');
        return {
          scope: scopes.join(' '),
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: options.ttl,
          jwt: { sign: { alg: 'ES256' } },
        };
      },
    },
  },
  issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: true,
});

for (const event of ['server_error', 'grant.error', 'authorization.error', 'registration_create.error']) {
  provider.on(event, (ctx, error) => console.error(event, error.error, error.error_description, error.error_detail));
}
provider.listen(port, '127.0.0.1', () => console.log('ready'));
