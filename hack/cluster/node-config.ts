import { join } from 'node:path';
import { nodeImages } from './node-images.ts';

/** The addresses inside the node's network, which cannot collide with any outside. */
export const nodeAddresses = {
  node: '10.77.0.1',
  pods: '10.244.0.0/24',
  dns: '10.96.0.10',
  nodes: '10.77.0.0/24',
} as const;

/** The name of this machine's loopback address inside the node: the registry in image references. */
export const registryName = 'registry.test';

/** The files of the node, by what they hold. */
export const nodeFiles = (directory: string) => ({
  containerd: join(directory, 'containerd.toml'),
  registries: join(directory, 'certs.d'),
  networks: join(directory, 'networks'),
  kubelet: join(directory, 'kubelet.yaml'),
  proxy: join(directory, 'kube-proxy.yaml'),
  staticPods: join(directory, 'static-pods'),
});
type Files = ReturnType<typeof nodeFiles>;

const socket = '/run/containerd/containerd.sock';

export const containerdConfig = (files: Files) => ({
  version: 3,
  grpc: { address: socket },
  plugins: {
    'io.containerd.cri.v1.images': {
      snapshotter: 'overlayfs',
      pinned_images: { sandbox: nodeImages.pause },
      registry: { config_path: files.registries },
    },
    'io.containerd.cri.v1.runtime': {
      // runc fails with "can't get final child's PID from pipe: EOF" if it may not lower an oom score, as in a
      // container without CAP_SYS_RESOURCE.
      restrict_oom_score_adj: true,
      cni: { bin_dirs: ['/usr/lib/cni'], conf_dir: files.networks },
      containerd: {
        default_runtime_name: 'runc',
        runtimes: {
          runc: {
            runtime_type: 'io.containerd.runc.v2',
            options: { BinaryName: '/usr/sbin/runc', SystemdCgroup: false },
          },
        },
      },
    },
  },
});

export const bridgeNetwork = {
  cniVersion: '1.0.0',
  name: 'bridge',
  plugins: [
    {
      type: 'bridge',
      bridge: 'cni0',
      isGateway: true,
      ipMasq: true,
      hairpinMode: true,
      ipam: {
        type: 'host-local',
        ranges: [[{ subnet: nodeAddresses.pods }]],
        routes: [{ dst: '0.0.0.0/0' }],
        // Empty after each start of the node, like its pods.
        dataDir: '/run/cni/networks',
      },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
};

export const kubeletConfig = (directory: string, files: Files) => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  // Since 1.35 the kubelet refuses to start on cgroup v1 without this.
  failCgroupV1: false,
  cgroupDriver: 'cgroupfs',
  containerRuntimeEndpoint: `unix://${socket}`,
  authentication: {
    anonymous: { enabled: false },
    webhook: { enabled: true },
    x509: { clientCAFile: join(directory, 'ca.crt') },
  },
  authorization: { mode: 'Webhook' },
  clusterDNS: [nodeAddresses.dns],
  clusterDomain: 'cluster.local',
  staticPodPath: files.staticPods,
  // The time in which a change of a mounted ConfigMap is noticed; the default is a minute.
  syncFrequency: '5s',
  // These values belong to the whole machine: init.sh shows the kubelet files that already have them.
  protectKernelDefaults: true,
  makeIPTablesUtilChains: false,
  nodeStatusUpdateFrequency: '4s',
  // The disk is that of the machine, and how full it is has nothing to do with the tests.
  evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
  imageGCHighThresholdPercent: 100,
});

export const proxyConfig = (name: string, kubeconfig: string) => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'nftables',
  clientConnection: { kubeconfig },
  clusterCIDR: nodeAddresses.pods,
  hostnameOverride: name,
  nodePortAddresses: [nodeAddresses.nodes],
  // These values belong to the whole machine.
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
});
