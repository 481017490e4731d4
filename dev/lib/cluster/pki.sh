# shellcheck shell=bash
# Certificates and kubeconfigs: every component has an identity of its own.

pki_authority() {
  [ -s "$STATE/pki/ca.crt" ] && return
  local dir=$STATE/pki
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj "/CN=bimetal-$NAME" \
    -keyout "$dir/ca.key" -out "$dir/ca.crt.new" 2>/dev/null
  openssl ecparam -name prime256v1 -genkey -noout -out "$dir/sa.key"
  openssl ec -in "$dir/sa.key" -pubout -out "$dir/sa.pub" 2>/dev/null
  mv "$dir/ca.crt.new" "$dir/ca.crt"
}

pki_issue() { # FILE SUBJECT [SUBJECT-ALTERNATIVE-NAMES]
  local base=$STATE/pki/$1
  [ -s "$base.crt" ] && return
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$2" \
    -keyout "$base.key" -out "$base.csr" 2>/dev/null
  openssl x509 -req -in "$base.csr" -CA "$STATE/pki/ca.crt" -CAkey "$STATE/pki/ca.key" -days 365 \
    -set_serial "0x$(openssl rand -hex 16)" -out "$base.crt.new" 2>/dev/null \
    -extfile <(
      echo "basicConstraints=CA:FALSE"
      echo "extendedKeyUsage=serverAuth,clientAuth"
      [ -z "${3:-}" ] || echo "subjectAltName=$3"
    )
  rm "$base.csr"
  mv "$base.crt.new" "$base.crt"
}

# A self-contained kubeconfig for the identity of pki/NAME.
kubeconfig_write() { # NAME
  local file=$STATE/$1.kubeconfig
  [ -s "$file" ] && return
  cat >"$file.new" <<EOF
apiVersion: v1
kind: Config
clusters:
- name: bimetal-$NAME
  cluster:
    server: $API_URL
    certificate-authority-data: $(base64 -w0 "$STATE/pki/ca.crt")
users:
- name: $1
  user:
    client-certificate-data: $(base64 -w0 "$STATE/pki/$1.crt")
    client-key-data: $(base64 -w0 "$STATE/pki/$1.key")
contexts:
- name: bimetal-$NAME
  context: {cluster: bimetal-$NAME, user: $1}
current-context: bimetal-$NAME
EOF
  chmod 600 "$file.new"
  mv "$file.new" "$file"
}

pki_client() { # NAME SUBJECT: certificate and kubeconfig of a client
  pki_issue "$1" "$2"
  kubeconfig_write "$1"
}
