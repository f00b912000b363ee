{{/*
The configuration as the program reads it: what was given, and the paths of what the chart mounts. A path that was given, too,
is refused: nobody could tell which one holds.
*/}}
{{- define "archaware.given" -}}
{{- $given := deepCopy (.Values.config | default dict) -}}
{{- $mounted := list
  (list "webhook" "certificates" "webhook.certManager.enabled" (ternary "/etc/archaware-certificates" "" .Values.webhook.certManager.enabled))
  (list "nodeLabels" "directory" "nodeLabels" (ternary "/etc/archaware-labels" "" (or .Values.nodeLabels.shipped (not (empty .Values.nodeLabels.rules)))))
  (list "credentials" "directory" "credentials.directorySecret" (ternary "" "/etc/archaware-credentials/registries" (empty .Values.credentials.directorySecret)))
  (list "registries" "caFile" "caConfigMap" (ternary "" "/etc/archaware-ca/ca.crt" (empty .Values.caConfigMap)))
  (list "registries" "containerdConfigDirectory" "nodePaths.containerd" (ternary "" "/etc/archaware-node/containerd" (empty .Values.nodePaths.containerd)))
-}}
{{- range $mounted -}}
{{- $group := index . 0 -}}{{- $key := index . 1 -}}{{- $path := index . 3 -}}
{{- if $path -}}
{{- $old := dig $group $key "" $given -}}
{{- if and $old (ne $old $path) -}}
{{- fail (printf "config.%s.%s: got %q, expected nothing beside %s" $group $key $old (index . 2)) -}}
{{- end -}}
{{- $_ := set $given $group (mergeOverwrite (get $given $group | default dict) (dict $key $path)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.nodePaths.kubelet -}}
{{- if .config -}}
{{- if dig "credentials" "kubelet" "config" "" $given -}}
{{- fail "config.credentials.kubelet: expected nothing beside nodePaths.kubelet" -}}
{{- end -}}
{{- $paths := dict "config" "/etc/archaware-node/kubelet/config.yaml" "binDirectory" "/etc/archaware-node/kubelet/bin" -}}
{{- $_ := set $given "credentials" (mergeOverwrite (get $given "credentials" | default dict) (dict "kubelet" $paths)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.credentials.dockerConfigSecrets -}}
{{- $files := dig "credentials" "dockerConfigFiles" list $given -}}
{{- range . -}}{{- $files = append $files (printf "/etc/archaware-credentials/docker/%s/.dockerconfigjson" .) -}}{{- end -}}
{{- $_ := set $given "credentials" (mergeOverwrite (get $given "credentials" | default dict) (dict "dockerConfigFiles" $files)) -}}
{{- end -}}
{{- if hasKey $given "loops" -}}
{{- if .Values.withoutTaints -}}
{{- fail "withoutTaints: got true, expected false with config.loops: one of them says which loops run" -}}
{{- end -}}
{{- else -}}
{{- $whole := include "archaware.effective" (dict "root" . "given" $given) | fromJson -}}
{{- with include "archaware.loops" (dict "config" $whole "withoutTaints" .Values.withoutTaints) | fromJsonArray -}}
{{- $_ := set $given "loops" . -}}
{{- end -}}
{{- end -}}
{{- toJson $given -}}
{{- end }}

{{/*
Where nobody said which loops run: {config, withoutTaints}, config with every default; [] is all of them. Those for nodes and
DaemonSets run in every mode, as they take away what another mode left, until withoutTaints says that nothing is.
*/}}
{{- define "archaware.loops" -}}
{{- $config := .config -}}
{{- $tolerates := ne $config.placement.mode "affinity" -}}
{{- if and .withoutTaints $tolerates $config.taints.manage -}}
{{- fail (printf "withoutTaints: got true, expected false with config.placement.mode: %s and config.taints.manage: true" $config.placement.mode) -}}
{{- end -}}
{{- $nodes := not .withoutTaints -}}
{{- $daemonSets := and (eq $config.pods.daemonSets "patch") (or $tolerates (not .withoutTaints)) -}}
{{- if and $nodes $daemonSets -}}
[]
{{- else -}}
{{- $loops := list "pods" -}}
{{- if $nodes -}}{{- $loops = append $loops "nodes" -}}{{- end -}}
{{- if $daemonSets -}}{{- $loops = append $loops "daemonsets" -}}{{- end -}}
{{- if $config.nodeLabels.directory -}}{{- $loops = append $loops "labels" -}}{{- end -}}
{{- toJson $loops -}}
{{- end -}}
{{- end }}

{{/* A configuration with every default: {root, given}. Lists and maps of a key replace its default, as in the program. */}}
{{- define "archaware.effective" -}}
{{- $config := dict -}}
{{- $given := .given -}}
{{- range $key := (.root.Files.Get "files/config.json" | fromJson).keys -}}
{{- $value := $given -}}
{{- range $part := $key.path -}}
{{- $value = ternary (get (ternary $value dict (kindIs "map" $value)) $part) nil (and (kindIs "map" $value) (hasKey $value $part)) -}}
{{- end -}}
{{- $group := $config -}}
{{- range initial $key.path -}}
{{- if not (hasKey $group .) -}}{{- $_ := set $group . dict -}}{{- end -}}
{{- $group = get $group . -}}
{{- end -}}
{{- $_ := set $group (last $key.path) (ternary $key.default $value (kindIs "invalid" $value)) -}}
{{- end -}}
{{- /* As in the program: the webhook follows from the mode where nobody says anything else. */ -}}
{{- if and (ne $config.placement.mode "taints") (not (hasKey (get $given "webhook" | default dict) "enabled")) -}}
{{- $_ := set $config.webhook "enabled" true -}}
{{- end -}}
{{- toJson $config -}}
{{- end }}

{{/* What of a configuration (every default included) holds only after a restart, in one text. */}}
{{- define "archaware.restart" -}}
{{- $config := .config -}}
{{- range $key := (.root.Files.Get "files/config.json" | fromJson).keys -}}
{{- if $key.restart -}}
{{- $value := $config -}}
{{- range $key.path -}}{{- $value = get $value . -}}{{- end -}}
{{ join "." $key.path }}={{ toJson $value }};
{{- end -}}
{{- end -}}
{{- end }}
