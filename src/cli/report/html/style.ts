/** The style of the page. Widths of bars are attributes: the policy of the page allows no style in an element. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --page: light-dark(#f4f6f9, #10141b);
  --surface: light-dark(#ffffff, #1a202b);
  --raised: light-dark(#eef1f6, #232b38);
  --text: light-dark(#18202d, #e8ecf3);
  --muted: light-dark(#525c6c, #a9b3c3);
  --line: light-dark(#d6dce6, #333d4d);
  --edge: light-dark(#768093, #7d889b);
  --accent: light-dark(#0b5cad, #84bcff);
  --warning: light-dark(#fff6e0, #33290f);
  --ready: light-dark(#0b7a5c, #35c092);
  --pinned: light-dark(#b27300, #e7b34d);
  --blocked: light-dark(#c7391b, #ff8767);
  --missing: light-dark(#7b3fc4, #b896fa);
  --unknown: light-dark(#6b7484, #98a2b3);
}
*, *::before { box-sizing: border-box; }
[hidden] { display: none !important; }
body {
  margin: 0 auto; padding: 1rem clamp(.75rem, 3vw, 2rem) 3rem; max-width: 88rem;
  background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0; }
h2 { font-size: 1.35rem; margin: 2.5rem 0 .75rem; }
h2 small { font-size: .95rem; font-weight: normal; }
h3 { font-size: 1.05rem; margin: 1.75rem 0 0; }
p { margin: .25rem 0; }
a, summary { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
h2 small, .hint, header > p, td li, label, #count { color: var(--muted); }
.hint, td li { font-size: .9rem; font-weight: normal; }
ul { list-style: none; margin: 0; padding: 0; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0; }
summary { cursor: pointer; width: fit-content; }
dl, dd { margin: 0; }
dl div { display: grid; grid-template-columns: 7rem 1fr; padding: .15rem 0; }
.warning { background: var(--warning); border: 1px solid var(--pinned); border-radius: .5rem; padding: .5rem 1rem; margin-top: 1rem; }
.warning h2 { font-size: 1.05rem; margin: 0; }

.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin-bottom: .75rem; }
.tile { flex: 1 1 9rem; background: var(--surface); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem; }
.big { flex-basis: 100%; }
.figure { font-size: 1.6rem; font-weight: 650; margin: 0; }
.big .figure { font-size: 2.4rem; line-height: 1.2; }

.s { white-space: nowrap; font-weight: 600; }
.s::before { content: ''; display: inline-block; width: .7em; height: .7em; margin-right: .45em; border-radius: 2px; background: var(--c); }
.ready { --c: var(--ready); }
.pinned { --c: var(--pinned); }
.blocked { --c: var(--blocked); }
.missing { --c: var(--missing); }
.unknown { --c: var(--unknown); }
.bar { display: block; width: 100%; min-width: 8rem; height: .9rem; background: var(--raised); border-radius: 3px; forced-color-adjust: none; }
.bar rect { fill: var(--c); stroke: var(--surface); stroke-width: 1px; }

.scroll { overflow: auto; max-height: 40rem; border: 1px solid var(--line); border-radius: .6rem; background: var(--surface); }
table { width: 100%; border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem; border-bottom: 1px solid var(--line); font-weight: normal; overflow-wrap: break-word; }
thead th { position: sticky; top: 0; background: var(--raised); font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 600; min-width: 8rem; overflow-wrap: anywhere; }
td ul { min-width: 12rem; overflow-wrap: anywhere; }
.n { white-space: nowrap; }
[aria-sort] { background: var(--line) !important; }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 3px solid var(--accent); }
th button::after { content: '\\2195'; margin-left: .35em; color: var(--muted); }
[aria-sort='ascending'] button::after { content: '\\2191'; color: inherit; }
[aria-sort='descending'] button::after { content: '\\2193'; color: inherit; }

form { display: flex; flex-wrap: wrap; gap: .5rem .9rem; align-items: end; margin-bottom: .5rem; }
label { display: grid; font-size: .9rem; }
label:first-child { flex: 1 1 12rem; }
input, select, form button {
  font: inherit; color: var(--text); background: var(--surface); border: 1px solid var(--edge); border-radius: .4rem; padding: .4rem .6rem; min-height: 2.5rem; min-width: 0;
}
::placeholder { color: var(--muted); opacity: 1; }

@media screen and (max-width: 45rem) {
  .scroll { overflow: visible; max-height: none; border: 0; background: none; }
  table, thead, tbody, th, td { display: block; }
  tr { display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
  th, td { border: 0; padding: 0; overflow-wrap: anywhere; }
  thead { margin: .5rem 0; }
  thead th { position: static; border: 1px solid var(--edge); border-radius: .4rem; padding: .2rem .5rem; }
  tbody tr { background: var(--surface); border: 1px solid var(--line); border-radius: .6rem; padding: .6rem .8rem; margin-bottom: .6rem; }
  tbody th, [data-state], td:has(ul, .bar) { flex-basis: 100%; }
  tbody th { order: -2; }
  [data-state], td:has(.bar) { order: -1; }
  td::before { content: attr(data-head) ' '; color: var(--muted); }
}
@media print {
  :root { color-scheme: light; --page: #fff; }
  body { padding: 0; max-width: none; font-size: 9.5pt; print-color-adjust: exact; }
  nav, details, form { display: none !important; }
  .scroll { overflow: visible; max-height: none; border: 0; }
  .tile, tr { break-inside: avoid; }
  thead th { position: static; }
  th button::after { content: none !important; }
}
`;
