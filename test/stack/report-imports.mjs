/**
 * Reads `[{ file, code }]` from standard input and prints, for each, what the import boundaries of
 * eslint.config.mjs report. A process of its own, because jest loads no ES modules.
 */
import { ESLint } from 'eslint';
import { text } from 'node:stream/consumers';
import tseslint from 'typescript-eslint';
import { boundaryConfigs } from '../../eslint.config.mjs';

const eslint = new ESLint({
  overrideConfigFile: true,
  overrideConfig: [
    {
      files: ['**/*.ts'],
      plugins: { '@typescript-eslint': tseslint.plugin },
      languageOptions: { parser: tseslint.parser },
    },
    ...boundaryConfigs,
  ],
});
const reports = [];
for (const { file, code } of JSON.parse(await text(process.stdin))) {
  const results = await eslint.lintText(code, { filePath: file });
  reports.push(results.flatMap(({ messages }) => messages.map(({ message }) => message)));
}
console.log(JSON.stringify(reports));
