import eslint from '@eslint/js';
import { builtinModules } from 'node:module';
import tseslint from 'typescript-eslint';

/** The folders of the project, in the order in which data flows. */
const FOLDERS = [
  'domain',
  'workflows',
  'db',
  'channels',
  'activities',
  'api',
  'worker',
  'mock-channel',
  'test',
  'bench',
  'scripts',
];

/** What describes a run to those who start it and talk to it: names, messages, start options. */
const RUN_CONTRACT = ['ids', 'failures', 'messages', 'start-options'];

/**
 * What each folder may import of ours (its own files always). A folder: all of it; a list of files:
 * these alone. `test`, `bench` and `scripts` may import anything.
 * @type {Record<string, { values: Record<string, true | string[]>, types?: string[] }>}
 */
const ALLOWED = {
  domain: { values: {} },
  workflows: { values: { domain: true }, types: ['activities'] },
  db: { values: { domain: true } },
  channels: { values: { domain: true } },
  activities: {
    values: {
      db: true,
      channels: true,
      domain: true,
      workflows: RUN_CONTRACT,
    },
  },
  api: {
    values: {
      db: true,
      channels: true,
      domain: true,
      workflows: RUN_CONTRACT,
    },
  },
  worker: {
    values: {
      domain: true,
      workflows: true,
      db: true,
      channels: true,
      activities: true,
    },
  },
  'mock-channel': { values: { domain: ['money'] } },
};

/** A path to a folder of ours: from the file's own folder, one or two levels up. */
const UP = '^(?:\\.\\./)+';

/** @param {string} folder */
function boundaries(folder) {
  const { values, types = [] } = ALLOWED[folder] ?? { values: {} };
  const patterns = FOLDERS.filter((other) => other !== folder && values[other] !== true).map(
    (other) => {
      const files = values[other];
      return {
        regex: Array.isArray(files)
          ? `${UP}${other}(?!/(?:${files.join('|')})$)(?:/|$)`
          : `${UP}${other}(?:/|$)`,
        message: Array.isArray(files)
          ? `${folder} may import only ${files.join(', ')} of ${other}.`
          : `${folder} may not import ${other}.`,
        allowTypeImports: types.includes(other),
      };
    },
  );
  return [...patterns, ...packages(folder)];
}

/** Rules and workflows must give the same result on every replay: no I/O, nothing heavy. */
function packages(/** @type {string} */ folder) {
  const builtins = {
    regex: `^(?:node:|(?:${builtinModules.filter((name) => !name.startsWith('_')).join('|')})$)`,
    message: `${folder} may not import Node's modules: it is deterministic and without I/O.`,
  };
  if (folder === 'domain') {
    return [
      builtins,
      { regex: '^[^.]', message: 'domain is pure: it may not import any package.' },
    ];
  }
  if (folder === 'workflows') {
    return [
      builtins,
      {
        regex: '^(?!\\.|@temporalio/(?:workflow|common)(?:$|/))',
        message: 'workflows may import no package but the SDK for workflows.',
      },
    ];
  }
  return [];
}

/** The import boundaries alone; test/stack/boundaries.test.ts shows that each of them reports. */
export const boundaryConfigs = Object.keys(ALLOWED).map((folder) => ({
  files: [`${folder}/**/*.{ts,tsx}`],
  rules: {
    '@typescript-eslint/no-restricted-imports': ['error', { patterns: boundaries(folder) }],
    // The rule above does not see import(): what it would load cannot be checked.
    ...(folder === 'domain' || folder === 'workflows'
      ? { 'no-restricted-syntax': ['error', 'ImportExpression'] }
      : {}),
  },
}));

/** Type-checked against the DOM's own types (tsconfig.pages.json), so names are known there. */
const browserGlobals = Object.fromEntries(
  (
    'window document location navigator localStorage fetch performance setTimeout clearTimeout setInterval ' +
    'AbortSignal BroadcastChannel EventSource FormData HTMLElement HTMLFormElement URLSearchParams'
  )
    .split(' ')
    .map((name) => [name, 'readonly']),
);

export default tseslint.config(
  { ignores: ['node_modules/', 'dist/', '.cache/', '.data/', 'coverage/'] },
  {
    files: ['**/*.{ts,tsx}'],
    extends: [eslint.configs.recommended, tseslint.configs.recommended],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      // A promise nobody waits for is a lost error; in a workflow it is a lost step.
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      // A value import of a type would load the module, and its side effects, at run time.
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrors: 'all' },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/no-require-imports': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      eqeqeq: ['error', 'always', { null: 'ignore' }],
    },
  },
  ...boundaryConfigs,
  {
    files: ['**/*.mjs', '**/*.cjs'],
    extends: [eslint.configs.recommended],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        performance: 'readonly',
        setTimeout: 'readonly',
        setInterval: 'readonly',
        clearInterval: 'readonly',
        require: 'readonly',
        module: 'writable',
        __dirname: 'readonly',
        URL: 'readonly',
      },
    },
  },
  {
    // What browsers run.
    files: ['api/pages/assets/*.js'],
    extends: [eslint.configs.recommended],
    languageOptions: { globals: browserGlobals },
  },
);
