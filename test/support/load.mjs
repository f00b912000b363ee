// Loads TypeScript, and spares each test process client-node's 800 generated modules, of which nothing is used: two seconds.
import { register } from 'node:module';
import 'tsx';

const hooks = `
  export async function resolve(specifier, context, next) {
    const isUnused = specifier === './gen/index.js' && /client-node\\/dist\\/\\w+\\.js$/.test(context.parentURL);
    return isUnused ? { url: 'unused:gen', shortCircuit: true } : next(specifier, context);
  }
  export async function load(url, context, next) {
    if (url !== 'unused:gen') return next(url, context);
    const source = 'export class createConfiguration {} export class ServerConfiguration {}';
    return { format: 'module', source, shortCircuit: true };
  }`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
