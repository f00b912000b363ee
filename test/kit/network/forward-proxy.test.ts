import { expect } from 'chai';
import { createProxySelector } from '../../../src/kit/network/forward-proxy.ts';

describe('the proxy of the environment', () => {
  const https = 'https://registry.example.com/v2/';
  const rows: [environment: Record<string, string>, url: string, proxy: string | undefined][] = [
    [{}, https, undefined],
    [{ HTTPS_PROXY: 'http://p:3128' }, https, 'HTTPS_PROXY http://p:3128'],
    [{ HTTPS_PROXY: 'http://p:3128' }, 'http://registry.example.com/', undefined],
    [{ HTTPS_PROXY: 'http://p:3128', https_proxy: 'http://q' }, https, 'https_proxy http://q'],
    [{ HTTPS_PROXY: 'http://p:3128', https_proxy: '' }, https, 'HTTPS_PROXY http://p:3128'],
    [{ HTTP_PROXY: 'https://p:3129/' }, 'http://registry.example.com/', 'HTTP_PROXY https://p:3129'],
    [{ HTTPS_PROXY: 'p:3128' }, https, 'HTTPS_PROXY http://p:3128'],
    [{ ALL_PROXY: 'http://p' }, https, undefined],
    [{ HTTPS_PROXY: 'http://p' }, 'https://localhost:5000/', undefined],
    [{ HTTPS_PROXY: 'http://p' }, 'https://127.0.0.2/', undefined],
    [{ HTTPS_PROXY: 'http://p' }, 'https://[::1]/', undefined],
    [{ HTTPS_PROXY: 'http://p' }, 'https://[::ffff:127.0.0.1]/', undefined],
  ];
  for (const [environment, url, expected] of rows) {
    it(`for ${url} is ${expected ?? 'none'} with ${JSON.stringify(environment)}`, () => {
      const found = createProxySelector(environment)?.(new URL(url));
      expect(found && `${found.variable} ${found.origin}`).to.equal(expected);
    });
  }

  it('has its user and password', () => {
    const find = (HTTPS_PROXY: string) => createProxySelector({ HTTPS_PROXY })?.(new URL(https));
    const login = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
    expect(find('http://u:p%40ss@p:1')).to.deep.equal({
      variable: 'HTTPS_PROXY',
      host: 'p:1',
      origin: 'http://p:1',
      authorization: login('u:p@ss'),
    });
    expect(find('u@p:1')).to.include({ authorization: login('u:') });
    expect(find('http://p:1')).not.to.have.property('authorization');
  });

  for (const text of 'http:// http://u:secret@:3128 socks5://u:secret@p:1 http://u:secret%zz@p u:secret@p:x'.split(
    ' ',
  )) {
    it(`"${text}" is refused, without its password`, () => {
      const create = () => createProxySelector({ https_proxy: text });
      expect(create)
        .to.throw(/^https_proxy: /)
        .that.does.not.match(/secret/);
    });
  }

  const yes =
    '*|example.com|.example.com|*.example.com|registry.example.com|REGISTRY.example.COM.|other.test, example.com ,|other.test example.com|example.com:443';
  const no = '.registry.example.com|ample.com|example.com:80|/,:,.,[],*.,|';
  const exemptions: [no: string, url: string, isExempt: boolean][] = [
    ...yes.split('|').map((each): (typeof exemptions)[number] => [each, https, true]),
    ...no.split('|').map((each): (typeof exemptions)[number] => [each, https, false]),
    ['example.com:443', 'https://example.com:5000/', false],
    ['example.com:5000', 'https://r.example.com:5000/', true],
    ['10.0.0.1', 'https://10.0.0.1:5000/', true],
    ['10.0.0.1:5000', 'https://10.0.0.1:5000/', true],
    ['10.0.0.1:5000', 'https://10.0.0.1/', false],
    ['10.0.0.0/8', 'https://10.1.2.3/', true],
    ['10.0.0.0/8', 'https://[::ffff:10.1.2.3]/', true],
    ['10.0.0.0/8', 'https://11.1.2.3/', false],
    ['10.0.0.0/8', 'https://[fd00::1]/', false],
    ['10.0.0.0/8', 'https://10.example.com/', false],
    ['fd00::/8', 'https://[fd00::1]/', true],
    ['fd00::1', 'https://[fd00::1]:5000/', true],
    ['[fd00::1]', 'https://[fd00::1]:5000/', true],
    ['[fd00::1]:5000', 'https://[fd00::1]:5000/', true],
    ['0.0.1', 'https://10.0.0.1/', false],
    ['10.0.0.0/99', 'https://10.0.0.1/', false],
  ];
  for (const [NO_PROXY, url, isExempt] of exemptions) {
    it(`is ${isExempt ? 'not ' : ''}used for ${url} with NO_PROXY=${NO_PROXY}`, () => {
      for (const name of ['NO_PROXY', 'no_proxy']) {
        const find = createProxySelector({ HTTPS_PROXY: 'http://p', [name]: NO_PROXY });
        expect(find?.(new URL(url)) === undefined).to.equal(isExempt);
      }
    });
  }
});
