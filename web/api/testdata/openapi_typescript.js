const fs = require('fs'), path = require('path'), url = require('url'), ts = require('typescript');
const tool = require('openapi-typescript');
(async () => {
  const ast = await tool.default(new URL(url.pathToFileURL(process.argv[2])));
  fs.writeFileSync('api.ts', tool.astToString(ast));
  fs.writeFileSync('use.ts', `import type { components, operations } from './api';
export const deposit: components['schemas']['SubmitRequest'] = { url: 'https://example.org/a', type: 'file' };
export type Answer = operations['submit-payload']['responses'][202]['content']['application/json'];
export const batch = (a: Answer): string => a.batch_id;
`);
  const p = ts.createProgram(['api.ts', 'use.ts'], { strict: true, noEmit: true, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler });
  const found = ts.getPreEmitDiagnostics(p).map(d => ts.flattenDiagnosticMessageText(d.messageText, '\n'));
  console.log(found.length ? found.join('\n') : 'compiles');
  process.exit(found.length ? 1 : 0);
})();
