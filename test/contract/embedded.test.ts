import { startEmbeddedCluster } from '../simulator/embedded-cluster.ts';
import { describeContract } from './contract.ts';

describeContract('the embedded cluster', ({ defaultTolerations }) =>
  startEmbeddedCluster({ defaultTolerations, bookmarkPeriodMs: 100 }),
);
