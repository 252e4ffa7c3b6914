/**
 * `npm start`: installs what is missing, then runs start.ts in this very process, so that a signal
 * has nobody to get lost at. Plain JavaScript, because nothing may be installed yet.
 */
import { createRequire } from 'node:module';
import { endWithNpm } from './end-with-npm.mjs';
import { ensureInstalled } from './install.mjs';

ensureInstalled();
endWithNpm();
const require = createRequire(import.meta.url);
require('tsx/cjs/api').register();
require('./start.ts');
