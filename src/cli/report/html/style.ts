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
:root[data-theme='light'] { color-scheme: light; }
:root[data-theme='dark'] { color-scheme: dark; }
*, *::before { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem clamp(.75rem, 3vw, 2rem) 3rem; max-width: 88rem;
  background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif;
  overflow-wrap: anywhere;
}
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0; }
h2 { font-size: 1.35rem; margin: 2.5rem 0 .75rem; }
h2 small { font-size: .95rem; font-weight: normal; color: var(--muted); }
h3 { font-size: 1.05rem; margin: 1.75rem 0 0; }
p { margin: .5rem 0; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
h2:focus-visible { outline-offset: 6px; }
.hint, header > p { color: var(--muted); }
.hint { margin: .1rem 0 .6rem; font-size: .9rem; }
.skip { position: absolute; left: 1rem; top: -4rem; padding: .5rem 1rem; background: var(--surface); z-index: 2; }
.skip:focus { top: .5rem; }
.head { display: flex; flex-wrap: wrap; gap: .5rem 2rem; justify-content: space-between; align-items: center; }
header > p { margin: .25rem 0; }
time { white-space: nowrap; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; margin: .5rem 0; padding: 0; }
nav a { display: inline-block; padding: .2rem 0; }
.warning { background: var(--warning); border: 1px solid var(--pinned); border-radius: .5rem; padding: .25rem 1rem; margin-top: 1rem; }
.warning h2 { font-size: 1.05rem; margin: .5rem 0 0; }
.warning ul { margin: .25rem 0 .5rem; padding-left: 1.25rem; }

.legend { margin: .5rem 0; }
.legend summary { cursor: pointer; width: fit-content; color: var(--accent); padding: .2rem 0; }
.legend dl { margin: .5rem 0; }
.legend dl div { display: grid; grid-template-columns: 7rem 1fr; padding: .15rem 0; }
.legend dd { margin: 0; }

.tiles { display: grid; gap: .75rem; grid-template-columns: repeat(10, 1fr); }
.tile {
  background: var(--surface); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem;
  grid-column: span 2; color: inherit; text-decoration: none; display: block;
}
.tile:not(a) { grid-column: span 4; }
.tile.big { grid-column: span 6; }
.tile p, .tile .figure { margin: 0; }
.tile > span:last-child { color: var(--muted); font-size: .9rem; }
.figure { font-size: 1.6rem; font-weight: 650; line-height: 1.35; display: block; font-variant-numeric: tabular-nums; }
.tile:not(a) .figure { font-size: 2.4rem; line-height: 1.2; }
a.tile:hover { border-color: var(--accent); }
.tile .bar { margin-top: .6rem; height: 1.1rem; }

.s { white-space: nowrap; font-weight: 600; }
.s::before { content: ''; display: inline-block; width: .7em; height: .7em; margin-right: .45em; border-radius: 2px; background: var(--c); }
.ready { --c: var(--ready); }
.pinned { --c: var(--pinned); }
.blocked { --c: var(--blocked); }
.missing { --c: var(--missing); }
.unknown { --c: var(--unknown); }
.bar { display: block; width: 100%; height: .9rem; background: var(--raised); border-radius: 3px; forced-color-adjust: none; }
.bar rect { fill: var(--c); stroke: var(--surface); stroke-width: 1px; }

table { width: 100%; border-collapse: collapse; background: var(--surface); font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem; border-bottom: 1px solid var(--line); font-weight: normal; overflow-wrap: break-word; }
tbody th, td ul, td[data-l='Why'] { overflow-wrap: anywhere; }
thead th { font-weight: 600; background: var(--raised); white-space: nowrap; vertical-align: bottom; }
tbody th { font-weight: 600; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
td.n { white-space: nowrap; }
td ul { list-style: none; margin: 0; padding: 0; }
td ul, .note { font-size: .86rem; color: var(--muted); font-weight: normal; }
.note { margin: .1rem 0 0; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: .6rem; }
.scroll tbody tr:last-child > * { border-bottom: 0; }
.wide td[data-s], .wide td:last-child { min-width: 12rem; }
.wide td[data-l='Namespace'], .wide tbody th { min-width: 7rem; }
.wide td[data-l='Kind'] { overflow-wrap: normal; }
.chart { border: 1px solid var(--line); }
.chart thead th::first-letter { text-transform: uppercase; }
.chart th:first-child { width: 30%; font-weight: 600; }
.chart td { vertical-align: middle; }
.chart td:last-child { width: 14rem; font-variant-numeric: tabular-nums; }
[aria-sort] { background: var(--line); }
th button { all: unset; cursor: pointer; font-weight: 600; display: inline-block; padding: .1rem 0; }
th button:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
th button:hover { text-decoration: underline; }
th button::after { content: '\\2195'; margin-left: .35em; color: var(--muted); }
[aria-sort='ascending'] button::after { content: '\\2191'; color: inherit; }
[aria-sort='descending'] button::after { content: '\\2193'; color: inherit; }

.controls, .more { display: none; }
.js .controls { display: grid; gap: .6rem .9rem; grid-template-columns: 2fr repeat(3, minmax(8rem, 1fr)) auto; align-items: end; }
.js .more:not([hidden]) { display: block; }
.js .theme { display: flex; align-items: center; gap: .5rem; }
.controls label { display: grid; gap: .15rem; font-size: .9rem; color: var(--muted); min-width: 0; }
input, select, .buttons button, .more button {
  font: inherit; color: var(--text); background: var(--surface); border: 1px solid var(--edge); border-radius: .4rem;
  padding: .4rem .6rem; min-height: 2.4rem; width: 100%; min-width: 0; text-overflow: ellipsis;
}
::placeholder { color: var(--muted); opacity: 1; }
.buttons { display: flex; gap: .5rem; }
.buttons button, .more button { width: auto; cursor: pointer; font-weight: 600; white-space: nowrap; }
.buttons button:hover, .more button:hover { border-color: var(--accent); color: var(--accent); }
.theme select { width: auto; }
.count { color: var(--muted); min-height: 1.5rem; }
[hidden] { display: none !important; }

@media screen {
  .js .later { display: none; }
}
@media screen and (max-width: 60rem) {
  .js form.controls { grid-template-columns: repeat(auto-fit, minmax(min(100%, 11rem), 1fr)); }
  .tile:not(a), .tile.big { grid-column: 1 / -1; }
}
@media screen and (max-width: 44rem) {
  .tiles { grid-template-columns: repeat(2, 1fr); }
  .tile { grid-column: span 1; padding: .6rem .75rem; }
  .chart, .chart tbody { display: block; }
  .chart thead { display: none; }
  .chart tr { display: grid; grid-template-columns: 1fr auto; border-bottom: 1px solid var(--line); padding: .3rem 0; }
  .chart tr > * { border: 0; padding: .15rem .6rem; width: auto !important; }
  .chart td:nth-child(2) { grid-area: 2 / 1 / 3 / 3; }
  .cards, .cards tbody, .cards tr { display: block; }
  .cards:not(.wide) thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .cards.wide thead, .cards.wide thead tr { display: flex; flex-wrap: wrap; background: var(--raised); }
  .tile:last-child { grid-column: 1 / -1; }
  .cards thead th { border: 0; padding: .5rem .7rem; }
  .cards tbody tr { padding: .5rem 0; border-bottom: 2px solid var(--line); }
  .cards tbody tr > * { display: grid; grid-template-columns: 7rem 1fr; column-gap: .5rem; border: 0; padding: .15rem .7rem; text-align: left; min-width: 0; overflow-wrap: anywhere; }
  .cards tbody tr > ::before { content: attr(data-l); color: var(--muted); font-weight: normal; grid-row: 1 / span 9; }
  .cards tbody tr > * > * { grid-column: 2; }
  .cards .s::before { grid-row: auto; }
}
@media (prefers-reduced-motion: no-preference) {
  html { scroll-behavior: smooth; }
}
@media print {
  :root, :root[data-theme] { color-scheme: light; --page: #fff; }
  @page { margin: 12mm; }
  body { padding: 0; max-width: none; font-size: 9.5pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .controls, .js .controls, .js .more, .skip, nav, .legend, .count { display: none !important; }
  .scroll { overflow: visible; border: 0; }
  .tile, tr { break-inside: avoid; }
  h2, h3, .hint { break-after: avoid; }
  thead { display: table-header-group; }
  th button::after { content: none !important; }
  th, td { padding: 3pt 5pt; }
  .wide td[data-s], .wide td:last-child { min-width: 9rem; }
  .wide td[data-l='Namespace'] { min-width: 0; }
  a { color: inherit; text-decoration: none; }
}
`;
