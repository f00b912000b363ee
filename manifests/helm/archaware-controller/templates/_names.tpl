{{/* Labels of an object: {root}, and perhaps name (of objects that the Deployment does not select) and labels. */}}
{{- define "archaware.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" (.name | default "archaware-controller")
  "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_")
-}}
{{- mergeOverwrite $own .root.Values.labels (.labels | default dict) | toYaml -}}
{{- end }}

{{/* The metadata of an object: {root, name}, and perhaps namespace, annotations, labels, app (for objects that the Deployment does not select). */}}
{{- define "archaware.metadata" -}}
name: {{ .name }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
labels:
  {{- include "archaware.labels" (dict "root" .root "name" .app "labels" .labels) | nindent 2 }}
{{- with mergeOverwrite (deepCopy .root.Values.annotations) (.annotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A binding of a role to the service account: {root, kind, name}, and perhaps namespace, annotations. */}}
{{- define "archaware.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  {{- include "archaware.metadata" . | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ .root.Values.serviceAccount.name }}
  namespace: {{ .root.Release.Namespace }}
{{- end }}

{{- define "archaware.image" -}}
{{- with .Values.image -}}
{{- $repository := required "image.repository: not set. The chart of the repository names no image, and the chart of a release names the released one. To use this chart, build and push an image (hack/build.sh NAMESPACE TAG prints the helm command for it), then set image.repository to its name, as registry.example.com/you/archaware-controller" .repository -}}
{{- if .digest -}}
{{ $repository }}@{{ .digest }}
{{- else -}}
{{ $repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A list of texts in CEL. */}}
{{- define "archaware.list" -}}
{{- if . }}['{{ join "', '" . }}']{{ else }}[]{{ end -}}
{{- end }}
