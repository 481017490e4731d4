{{/* Names are fixed: there is one Bimetal in a cluster. */}}

{{- define "bimetal.labels" -}}
app.kubernetes.io/name: bimetal
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: bimetal
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "bimetal.selector" -}}
app.kubernetes.io/name: bimetal
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The reference of one image, or nothing where it names no repository. */}}
{{- define "bimetal.image" -}}
{{- $image := index .root.Values.image .name -}}
{{- if $image.repository -}}
{{- with .root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest -}}
@{{ $image.digest }}
{{- else -}}
:{{ $image.tag | default .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "bimetal.operatorUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:bimetal-operator
{{- end }}

{{/* Restricted, as Pod Security names it, apart from the user id. */}}
{{- define "bimetal.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
