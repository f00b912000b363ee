// Measures the controller. Usage: npm run bench [-- NAME] [-- OPTIONS]; without a name: everything that a real control plane can
// show (whole.ts). The options of each benchmark are at the top of its file.
import { benchReport } from './report.ts';
import { benchClean } from './scale/clean.ts';
import { benchScale } from './scale/scale.ts';
import { benchWebhook } from './webhook.ts';
import { benchWhole } from './whole.ts';

const BENCHMARKS = new Map([
  ['webhook', benchWebhook],
  ['report', benchReport],
  ['scale', benchScale],
  ['clean', benchClean],
]);

const [name = '', ...options] = process.argv.slice(2);
const benchmark = BENCHMARKS.get(name);
await (benchmark === undefined ? benchWhole(process.argv.slice(2)) : benchmark(options));
