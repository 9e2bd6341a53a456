// The official TypeScript SDK's part of the HTTP lines: a worker that takes the orders of harness.py.
// With the argument "serve" it is the server, which prints its port and ends with its standard input.

import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

// The packages are not beside this file: the second argument is the folder that has them.
const [role, folder] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const from = (name) => import(pathToFileURL(require.resolve(name)));

const TEXT = "The quick brown fox jumps over the lazy dog.";
const { z } = await from("zod");

async function serve(stream) {
  const { McpServer } = await from("@modelcontextprotocol/sdk/server/mcp.js");
  const { StreamableHTTPServerTransport } = await from("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const make = () => {
    const server = new McpServer({ name: "bench", version: "1" });
    server.registerTool("echo", { description: "Give the text back.", inputSchema: { text: z.string() } },
      async ({ text }) => ({ content: [{ type: "text", text }] }));
    server.registerTool("report", { description: "Give it back.", inputSchema: { text: z.string() } },
      async ({ text }, extra) => {
        const progressToken = extra._meta?.progressToken;
        if (progressToken !== undefined) {
          await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress: 1 } });
        }
        return { content: [{ type: "text", text }] };
      });
    return server;
  };
  const http = createServer(async (request, response) => {
    // Without sessions, as its documentation has it: a server and a transport for each request.
    const server = make();
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: !stream });
    response.on("close", () => { transport.close(); server.close(); });
    await server.connect(transport);
    await transport.handleRequest(request, response);
  });
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
  process.stdin.resume().on("end", () => process.exit());
}

async function prepare(bench) {
  const { Client } = await from("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await from("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const [, kind, flying] = bench.split("-");
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), `serve-${kind}`, folder],
    { stdio: ["pipe", "pipe", "inherit"] });
  const port = await new Promise((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
  const client = new Client({ name: "bench", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)));
  const tool = { name: kind === "json" ? "echo" : "report", arguments: { text: TEXT } };
  const options = kind === "json" ? {} : { onprogress: () => {} };
  return async (calls) => {
    let left = calls;
    const fly = async () => {
      while (left-- > 0) await client.callTool(tool, undefined, options);
    };
    const start = performance.now();
    await Promise.all(Array.from({ length: Number(flying) }, fly));
    return (performance.now() - start) / 1000;
  };
}

async function work() {
  const ready = new Map();
  for await (const line of createInterface({ input: process.stdin })) {
    const { bench, calls } = JSON.parse(line);
    if (!ready.has(bench)) ready.set(bench, await prepare(bench));
    console.log(JSON.stringify(await ready.get(bench)(calls)));
  }
  process.exit();
}

await (role.startsWith("serve") ? serve(role === "serve-stream") : work());
