#!/bin/sh
# Makes the certificates of the tests anew, valid from 2020 to 2120: an authority, and a server and a client that it has
# signed. openssl ca, because openssl x509 dates certificates by the clock of the machine, which may be wrong.
set -e
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/index.txt"
echo 01 > "$work/serial"
cat > "$work/ca.cnf" << END
[ca]
default_ca = tests
[tests]
database = $work/index.txt
new_certs_dir = $work
default_md = sha256
serial = $work/serial
policy = names
copy_extensions = copy
[names]
commonName = supplied
[req]
distinguished_name = nothing
[nothing]
END
request() {
    openssl req -config "$work/ca.cnf" -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" \
        -subj "/CN=$1 of the tests" -addext "$2" -out "$work/$1.csr" 2> /dev/null
}
sign() {
    name=$1
    shift
    openssl ca -config "$work/ca.cnf" -batch -notext -startdate 20200101000000Z -enddate 21200101000000Z \
        -in "$work/$name.csr" -out "$name.pem" "$@" 2> /dev/null
}
request authority "basicConstraints=critical,CA:TRUE"
sign authority -selfsign -keyfile authority.key
for name in server client; do
    request $name "subjectAltName=DNS:localhost,IP:127.0.0.1"
    sign $name -keyfile authority.key -cert authority.pem
done
rm -f authority.key
chmod 644 ./*.key
