// Runs fetch_client.py in Pyodide: node fetch_client.mjs PYODIDE PACKAGES... -- URL TOOL JSON
// PYODIDE is the file pyodide.mjs; PACKAGES are folders in which Python finds sansmcp and what it needs.
import { fileURLToPath, pathToFileURL } from "node:url";

const split = process.argv.indexOf("--");
const [module, ...folders] = process.argv.slice(2, split);
const { loadPyodide } = await import(pathToFileURL(module));

const pyodide = await loadPyodide();
folders.push(fileURLToPath(new URL(".", import.meta.url)));
folders.forEach((folder, number) => {
  const place = `/packages/${number}`;
  pyodide.FS.mkdirTree(place);
  pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: folder }, place);
  pyodide.runPython(`import sys; sys.path.append("${place}")`);
});
const { main } = pyodide.pyimport("fetch_client");
await main(...process.argv.slice(split + 1));
process.exit(); // or it would wait for timers that nobody needs any more
