import { startCluster } from '../../hack/cluster/cluster.ts';
import { describeContract } from '../contract/contract.ts';

describeContract('the real cluster', ({ defaultTolerations }) =>
  startCluster(defaultTolerations ? {} : { apiServerArgs: ['--disable-admission-plugins=DefaultTolerationSeconds'] }),
);
