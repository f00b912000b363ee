import type { Readiness, Summary, Tally } from '../../../analysis/readiness/report.ts';
import { shareOf } from '../../../analysis/readiness/tally.ts';
import { READINESS_STATES, type ReadinessState } from '../../../placement/readiness/readiness-states.ts';
import { percent } from '../texts.ts';
import { html, type Markup } from './markup.ts';

const MEANINGS: Readonly<Record<ReadinessState, string>> = {
  ready: 'The images run on the architecture, and nothing keeps the workload away.',
  pinned: 'No image is known to be in the way, but the workload itself or the configuration keeps it away.',
  blocked: 'An image of the workload has no build for the architecture.',
  missing: 'A DaemonSet that would not run on nodes of the architecture, because an image has no build for it.',
  unknown: 'An image could not be looked up, or archaware leaves the workload alone. It counts as not ready.',
};

/** A state as a word with its color. */
export function stateMark(state: ReadinessState): Markup {
  return html`<span class="s ${state}">${state}</span>`;
}

/** A bar with a segment for each state, as long as its share. Its text alternative names the shares. */
export function stateBar(readiness: Readiness, all: Tally, measure: Summary['measure'], target: string): Markup {
  const shown = READINESS_STATES.map((state) => ({
    state,
    share: shareOf(readiness.states[state], all, measure),
  })).filter(({ share }) => share > 0 && all[measure] > 0);
  const words = shown.map(({ state, share }) => `${state} ${percent(share)}`);
  let start = 0;
  const segments = shown.map(({ state, share }) => {
    const x = start;
    start += share;
    return html`<rect class="${state}" x="${points(x)}%" width="${points(share)}%" height="100%"/>`;
  });
  return html`<svg class="bar" role="img" aria-label="${target}: ${words.join(', ') || 'nothing to count'}">${segments}</svg>`;
}

/** What the words and colors mean. */
export function legend(): Markup {
  return html`<details><summary>What the states mean</summary><dl>${READINESS_STATES.map(
    (state) => html`<div><dt>${stateMark(state)}</dt><dd>${MEANINGS[state]}</dd></div>`,
  )}</dl></details>`;
}

function points(share: number): string {
  return String(Math.round(share * 10_000) / 100);
}
