module.exports = {
  'node-option': ['enable-source-maps', 'max-semi-space-size=64'],
  require: ['./test/support/same-inputs.mjs'],
  reporter: './hack/closing-line.cjs',
  spec: ['.cache/test/**/*.test.mjs'],
  ignore: require('./test/thorough/files.cjs'),
  parallel: true,
  jobs: 4,
  timeout: 120_000,
  'forbid-only': true,
};
