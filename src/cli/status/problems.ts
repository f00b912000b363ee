import type { StatusProblem } from '../../app/leader-status.ts';
import { when } from '../../app/replica/known.ts';
import { APP_LABEL, DEPLOYMENT } from '../../names.ts';
import { few } from '../../placement/reasons.ts';
import { counted } from '../output.ts';
import { type Facts, hasLeader, isGuess, presentWord, readValue } from './facts.ts';
import { publicationProblems } from './publication.ts';

/** A pod that waits for longer is a problem, as for the alert ArchawarePodsWaiting. */
const LONG_WAIT_MS = 10 * 60_000;
/** A gate is removed within seconds once the images are known, as for the alert ArchawareGatedPods. */
const LONG_GATE_MS = 5 * 60_000;

/** Returns the problems, the worst first. Facts that could not be read are no problem. */
export function problemsOf(facts: Facts): StatusProblem[] {
  if (isMissing(facts)) return notInstalled(facts);
  return [
    ...ofLeader(facts),
    ...ofDeployment(facts, hasLeader(facts)),
    ...ofNodes(facts),
    ...ofGuard(facts),
    ...publicationProblems(facts),
    ...(presentWord(facts)?.problems ?? []),
    ...ofPods(facts),
    ...ofWebhook(facts),
    ...(readValue(facts.pools) ?? []).map(({ kind, name, note }) => ({
      problem: `${kind} ${name} ${note}`,
      do: 'docs/autoscalers.md',
    })),
  ];
}

/** Whether nothing of the controller was found. A controller may run outside of the cluster; then its Lease is held. */
export function isMissing(facts: Facts): boolean {
  const { deployment, replicas } = facts;
  if (deployment.kind === 'unread' || replicas.kind === 'unread') return false;
  return deployment.value === undefined && replicas.value.length === 0 && hasLeader(facts) !== true;
}

function notInstalled(facts: Facts): StatusProblem[] {
  const { nodes, taint, installation } = facts;
  const tainted = (readValue(nodes)?.counts ?? []).reduce((sum, count) => sum + count.tainted, 0);
  // A controller outside of the cluster has no Deployment, and who may not read the Lease cannot see it.
  const missing =
    hasLeader(facts) === false
      ? `archaware is not installed: there is no Deployment ${installation}, and nobody holds its Lease`
      : `archaware is not installed here: there is no Deployment ${installation}`;
  const have = tainted === 1 ? 'has' : 'have';
  return [
    { problem: missing, do: 'install it (docs/install.md), or name the Deployment with --installation NAMESPACE/NAME' },
    ...when(
      tainted > 0,
      `${counted(tainted, 'node')} still ${have} the taint ${taint}: new pods stay Pending there`,
      'install archaware again, or run archaware clean',
    ),
  ];
}

function ofDeployment({ deployment, replicas }: Facts, leads: boolean | undefined): StatusProblem[] {
  const troubles = (readValue(replicas) ?? []).flatMap(({ ready, trouble }) =>
    ready || trouble === '' ? [] : trouble,
  );
  const why = few([...new Set(troubles)], '; ');
  const found = readValue(deployment);
  if (found === undefined) return [];
  const { namespace, name, wanted, ready } = found;
  return [
    ...when(
      wanted === 0,
      `${leads === false ? 'no replica leads: ' : ''}Deployment ${namespace}/${name} is scaled to 0`,
      `kubectl -n ${namespace} scale deployment/${name} --replicas=2`,
    ),
    ...when(
      ready < wanted,
      `${ready} of ${wanted} replicas of Deployment ${namespace}/${name} are ready${why === '' ? '' : `: ${why}`}`,
      `kubectl -n ${namespace} describe pods -l ${APP_LABEL}=${DEPLOYMENT}`,
    ),
  ];
}

function ofLeader(facts: Facts): StatusProblem[] {
  // A Deployment that is scaled to 0 is a problem of its own, with the command.
  if (hasLeader(facts) !== false || readValue(facts.deployment)?.wanted === 0) return [];
  const lease = readValue(facts.lease);
  const why =
    lease === undefined
      ? `there is no Lease ${facts.leaseName}`
      : lease.holder === ''
        ? `nobody holds the Lease ${facts.leaseName}`
        : `${lease.holder} has not renewed the Lease ${facts.leaseName} for ${Math.round(lease.ageMs / 1000)} s`;
  const [namespace = ''] = facts.leaseName.split('/');
  return [
    {
      problem: `no replica leads: ${why}`,
      do:
        `kubectl -n ${namespace} get deployment,pods shows whether replicas run, and their log why none leads; then ` +
        `kubectl -n ${namespace} rollout restart deployment -l ${APP_LABEL}=${DEPLOYMENT} (docs/alerts.md, "ArchawareNoLeader")`,
    },
  ];
}

function ofNodes(facts: Facts): StatusProblem[] {
  // Which taint a node lacks is not known without the configuration.
  if (isGuess(facts)) return [];
  const { nodes, taint } = facts;
  const { lacking = [], unmanaged = [] } = readValue(nodes) ?? {};
  return [
    ...when(
      lacking.length > 0,
      `${counted(lacking.length, 'node')} without the taint ${taint}: ${few(lacking)}`,
      hasLeader(facts) === false ? 'a replica that leads taints them' : UNTAINTED_ADVICE,
    ),
    ...when(
      unmanaged.length > 0,
      `${counted(unmanaged.length, 'node')} with a taint of archaware that this configuration does not manage: ${few(unmanaged)}`,
      facts.mode === 'observe'
        ? 'remove them with clean --stop, and apply the manifest again (docs/first-week.md, "Install")'
        : 'let the loop for nodes run again (loops, withoutTaints), or remove them with clean --stop (docs/changing-modes.md, "Stranded taints")',
    ),
  ];
}

const UNTAINTED_ADVICE =
  'after an installation, wait for bootstrap.timeout; the problems that the leader wrote below name other reasons; then look for "not reconciled" in its log, and for its Events (kubectl get events -A --field-selector reportingComponent=archaware-controller)';

function ofGuard(facts: Facts): StatusProblem[] {
  const verdict = readValue(facts.guard);
  // The leader may have tried what these credentials may not try.
  const isKnown = verdict !== undefined && verdict.kind !== 'unknown';
  const isBroken = isKnown ? verdict.kind === 'broken' : presentWord(facts)?.keepsDaemonSets === false;
  const tried = verdict?.kind === 'broken' ? `a dry run with ${verdict.example}` : 'a dry run of the leader';
  return when(
    isBroken,
    `an update that drops archaware's tolerations from a DaemonSet is not corrected, by ${tried}: helm upgrade or a GitOps tool can so remove all of its pods from tainted nodes`,
    'apply the manifests again, or run helm upgrade, so that the policy archaware-keep or the webhook corrects it (docs/alerts.md, "ArchawareDaemonSetsUnprotected")',
  );
}

function ofPods(facts: Facts): StatusProblem[] {
  const [oldest] = presentWord(facts)?.waiting.oldest ?? [];
  if (oldest === undefined) return [];
  const { namespace, name, gated, since } = oldest;
  const ageMs = facts.now - Date.parse(since);
  return when(
    ageMs > (gated ? LONG_GATE_MS : LONG_WAIT_MS),
    `pod ${namespace}/${name} has waited for ${Math.floor(ageMs / 60_000)} minutes`,
    `archaware explain -n ${namespace} ${name}`,
  );
}

function ofWebhook({ webhook, webhookConfiguration }: Facts): StatusProblem[] {
  return when(
    webhook.state === 'not-reached',
    webhook.why,
    readValue(webhookConfiguration) === false
      ? 'apply the manifest of the webhook again, or run helm upgrade (docs/admission.md)'
      : 'let the API server reach the port of the webhook (TCP 9443 by default), and check the certificate (docs/operating.md, "admission reviews stay at 0")',
  );
}
