import { Session } from 'node:inspector';
import { writeFileSync } from 'node:fs';
const s = new Session(); s.connect();
s.post('Profiler.enable'); s.post('Profiler.setSamplingInterval', { interval: 500 }); s.post('Profiler.start');
process.on('exit', () => s.post('Profiler.stop', (e, r) => writeFileSync('/tmp/w/prof.cpuprofile', JSON.stringify(r.profile))));
process.argv[1] = '/tmp/w/M/dist/main.js';
await import('/tmp/w/M/dist/main.js');
