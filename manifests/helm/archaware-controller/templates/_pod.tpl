{{/* The spec of a pod of archaware: {root, state, args}, and served (the Deployment's: ports and probes). */}}
{{- define "archaware.pod" -}}
{{- $root := .root -}}{{- $values := .root.Values -}}{{- $state := .state -}}
serviceAccountName: {{ $values.serviceAccount.name }}
{{- with $values.image.pullSecrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
terminationGracePeriodSeconds: 30
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
tolerations:
- {key: {{ $state.config.taints.key | quote }}, operator: Exists}
{{- with $values.tolerations }}
{{ toYaml . }}
{{- end }}
{{- if and .served $values.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range $values.topologySpreadConstraints }}
- {{ mergeOverwrite (dict "labelSelector" (dict "matchLabels" (dict "app.kubernetes.io/name" "archaware-controller"))) . | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- with $values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
- name: archaware-controller
  image: {{ include "archaware.image" $root }}
  imagePullPolicy: {{ $values.image.pullPolicy }}
  command: [node, dist/main.js]
  args: {{ toJson .args }}
  env:
  # Node.js uses four threads for all DNS lookups, so names whose DNS server does not answer would delay all others.
  - {name: UV_THREADPOOL_SIZE, value: "64"}
  {{- with include "archaware.heap" $root }}
  # MiB, five eighths of limits.memory, so that V8 collects garbage before the kernel kills the process.
  - {name: NODE_OPTIONS, value: --max-old-space-size={{ . }}}
  {{- end }}
  {{- with $values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if and .served $state.metricsPort }}
  ports:
  - {name: metrics, containerPort: {{ $state.metricsPort }}}
  livenessProbe:
    httpGet: {path: /healthz, port: metrics}
    periodSeconds: 10
    timeoutSeconds: 10
    failureThreshold: 6
  readinessProbe:
    httpGet: {path: /readyz, port: metrics}
    periodSeconds: 5
    timeoutSeconds: 5
  {{- end }}
  resources:
    {{- toYaml $values.resources | nindent 4 }}
  {{- with $values.securityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  volumeMounts:
  - {name: config, mountPath: /etc/archaware, readOnly: true}
  {{- with include "archaware.mounts" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
volumes:
- name: config
  configMap: {name: archaware-controller}
{{- with include "archaware.volumes" . | trim }}
{{ . }}
{{- end }}
{{- end }}

{{- define "archaware.mounts" -}}
{{- $values := .root.Values }}
{{- range $domain, $_ := include "archaware.rules" .root | fromJson }}
- {name: {{ include "archaware.rulesVolume" $domain }}, mountPath: /etc/archaware-labels/{{ $domain }}, readOnly: true}
{{- end }}
{{- if $values.webhook.certManager.enabled }}
- {name: certificates, mountPath: /etc/archaware-certificates, readOnly: true}
{{- end }}
{{- range $index, $secret := $values.credentials.dockerConfigSecrets }}
- {name: docker-{{ $index }}, mountPath: /etc/archaware-credentials/docker/{{ $secret }}, readOnly: true}
{{- end }}
{{- if $values.credentials.directorySecret }}
- {name: registries, mountPath: /etc/archaware-credentials/registries, readOnly: true}
{{- end }}
{{- if $values.caConfigMap }}
- {name: ca, mountPath: /etc/archaware-ca, readOnly: true}
{{- end }}
{{- if $values.nodePaths.kubelet.config }}
- {name: kubelet-config, mountPath: /etc/archaware-node/kubelet/config.yaml, readOnly: true}
- {name: kubelet-bin, mountPath: /etc/archaware-node/kubelet/bin, readOnly: true}
{{- end }}
{{- if $values.nodePaths.containerd }}
- {name: containerd, mountPath: /etc/archaware-node/containerd, readOnly: true}
{{- end }}
{{- if $values.nodePaths.containers }}
- {name: containers, mountPath: /etc/archaware-node/containers, readOnly: true}
{{- end }}
{{- end }}

{{- define "archaware.volumes" -}}
{{- $values := .root.Values }}
{{- range $domain, $_ := include "archaware.rules" .root | fromJson }}
- name: {{ include "archaware.rulesVolume" $domain }}
  configMap: {name: archaware-controller-labels-{{ $domain }}}
{{- end }}
{{- if $values.webhook.certManager.enabled }}
- name: certificates
  secret: {secretName: archaware-controller-certificates}
{{- end }}
{{- range $index, $secret := $values.credentials.dockerConfigSecrets }}
- name: docker-{{ $index }}
  secret: {secretName: {{ $secret }}}
{{- end }}
{{- with $values.credentials.directorySecret }}
- name: registries
  secret: {secretName: {{ . }}}
{{- end }}
{{- with $values.caConfigMap }}
- name: ca
  configMap: {name: {{ . }}}
{{- end }}
{{- with $values.nodePaths.kubelet }}
{{- if .config }}
- name: kubelet-config
  hostPath: {path: {{ .config }}}
- name: kubelet-bin
  hostPath: {path: {{ .binDirectory }}, type: Directory}
{{- end }}
{{- end }}
{{- with $values.nodePaths.containerd }}
- name: containerd
  hostPath: {path: {{ . }}, type: Directory}
{{- end }}
{{- with $values.nodePaths.containers }}
- name: containers
  hostPath: {path: {{ . }}, type: Directory}
{{- end }}
{{- end }}

{{/* The maximum size of V8's old generation, in MiB; empty without a memory limit, and if values.env sets it. */}}
{{- define "archaware.heap" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources | toString -}}
{{- $mib := dict "Mi" 1.0 "Gi" 1024.0 "M" 0.95 "G" 953.0 -}}
{{- $unit := regexFind "[A-Za-z]+$" $limit -}}
{{- $said := false -}}
{{- range .Values.env -}}{{- if eq .name "NODE_OPTIONS" -}}{{- $said = true -}}{{- end -}}{{- end -}}
{{- if and (not $said) (hasKey $mib $unit) (regexMatch "^[0-9]+[A-Za-z]+$" $limit) -}}
{{- mulf (regexFind "^[0-9]+" $limit | float64) (get $mib $unit) 0.625 | floor | int -}}
{{- end -}}
{{- end }}
