// The common peer server, on the second generation of the official TypeScript SDK.
// Without arguments on stdio; else `npm_v2.cjs http PORT [auto|json|sse]`. Over HTTP there are two more
// tools, which ask the client and which tell of a change.
// CommonJS, since only `require` looks into NODE_PATH for packages that live elsewhere.

const { McpServer, acceptedContent, createMcpHandler, inputRequired } = require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');
const { setTimeout: sleep } = require('node:timers/promises');
const z = require('zod');

const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });

function build() {
  const server = new McpServer({ name: 'peer-npm-v2', version: '1.0.0' });

  server.registerTool(
    'echo',
    { description: 'Give the text back.', inputSchema: z.object({ text: z.string() }) },
    async ({ text: value }) => text(value),
  );

  server.registerTool(
    'add',
    { description: 'Add two numbers.', inputSchema: z.object({ a: z.number().int(), b: z.number().int() }) },
    async ({ a, b }) => text(a + b),
  );

  server.registerTool('fail', { description: 'Raise.' }, async () => {
    throw new Error('this tool always fails');
  });

  server.registerTool(
    'slow',
    {
      description: 'Take a while and report progress in four steps.',
      inputSchema: z.object({ seconds: z.number() }),
    },
    async ({ seconds }, ctx) => {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      for (let step = 1; step <= 4; step += 1) {
        await sleep((seconds * 1000) / 4);
        if (progressToken !== undefined) {
          const params = { progressToken, progress: step, total: 4 };
          await ctx.mcpReq.notify({ method: 'notifications/progress', params });
        }
      }
      return text('done');
    },
  );

  server.registerResource(
    'greeting',
    'test://greeting',
    { description: 'A friendly text.', mimeType: 'text/plain' },
    async (uri) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Hello from a resource' }] }),
  );

  server.registerPrompt(
    'greet',
    { description: 'Ask for a greeting.', argsSchema: z.object({ name: z.string() }) },
    ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Please greet ${name}.` } }] }),
  );

  return server;
}

function buildMore(notifier) {
  const server = build();
  const requestedSchema = z.object({ name: z.string() });

  server.registerTool('ask', { description: 'Ask the client for a name by a form.' }, async (ctx) => {
    const given = acceptedContent(ctx.mcpReq.inputResponses, 'who', requestedSchema);
    if (given !== undefined) {
      return text(`hello ${given.name}`);
    }
    const who = inputRequired.elicit({ message: 'Who are you?', requestedSchema });
    return inputRequired({ inputRequests: { who } });
  });

  server.registerTool('change', { description: 'Tell of changes.' }, async () => {
    notifier().resourceUpdated('test://greeting');
    notifier().toolsChanged();
    return text('told');
  });

  return server;
}

const [transport, port, responseMode] = process.argv.slice(2);
if (transport === 'http') {
  const { serve } = require('@hono/node-server');
  const { fetch, notify } = createMcpHandler(() => buildMore(() => notify), { responseMode });
  serve({ fetch: (request) => fetch(request), hostname: '127.0.0.1', port: Number(port) });
} else {
  serveStdio(build);
}
