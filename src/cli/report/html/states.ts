import {
  READINESS_STATES,
  type Readiness,
  type ReadinessState,
  type Tally,
} from '../../../placement/readiness/report.ts';
import { shareOf } from '../../../placement/readiness/tally.ts';
import { html, type Markup } from './markup.ts';
import { type Measure, percent } from './numbers.ts';

/** How the page names the states. */
export const STATE_WORDS: Readonly<Record<ReadinessState, { readonly name: string; readonly meaning: string }>> = {
  ready: { name: 'Ready', meaning: 'The images run on the architecture, and nothing keeps the workload away.' },
  pinned: {
    name: 'Pinned',
    meaning: 'No image is known to be in the way, but the workload itself or the configuration keeps it away.',
  },
  blocked: { name: 'Blocked', meaning: 'An image of the workload has no build for the architecture.' },
  missing: {
    name: 'Missing',
    meaning: 'A DaemonSet that would not run on nodes of the architecture, because an image has no build for it.',
  },
  unknown: {
    name: 'Unknown',
    meaning: 'An image could not be looked up, or archaware leaves the workload alone. It counts as not ready.',
  },
};

/** A state as a word with its color. */
export function stateMark(state: ReadinessState): Markup {
  return html`<span class="s ${state}">${STATE_WORDS[state].name}</span>`;
}

/** A bar with a segment for each state, as long as its share. Its text alternative names the shares. */
export function stateBar(readiness: Readiness, all: Tally, measure: Measure, about: string): Markup {
  const shares = READINESS_STATES.map((state) => ({ state, share: shareOf(readiness.states[state], all, measure) }));
  const shown = all[measure] === 0 ? [] : shares.filter(({ share }) => share > 0);
  const words = shown.map(({ state, share }) => `${STATE_WORDS[state].name.toLowerCase()} ${percent(share)}`);
  let start = 0;
  const segments = shown.map(({ state, share }) => {
    const x = start;
    start += share;
    return html`<rect class="${state}" x="${points(x)}%" width="${points(share)}%" height="100%"><title>${STATE_WORDS[state].name} ${percent(share)}</title></rect>`;
  });
  const label = `${about}: ${words.length === 0 ? 'nothing to count' : words.join(', ')}`;
  return html`<svg class="bar" role="img" aria-label="${label}">${segments}</svg>`;
}

/** What the words and colors mean. */
export function legend(): Markup {
  return html`<details class="legend"><summary>What the states mean</summary><dl>${READINESS_STATES.map(
    (state) => html`<div><dt>${stateMark(state)}</dt><dd>${STATE_WORDS[state].meaning}</dd></div>`,
  )}</dl></details>`;
}

function points(share: number): string {
  return String(Math.round(share * 10_000) / 100);
}
