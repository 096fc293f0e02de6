#!/bin/sh
# openssl.sh ROUNDS: makes a key and a certificate, then signs, verifies, encrypts and decrypts
# messages. Keys differ from run to run, so the round trips are what is checked.
set -eu
rounds=$1

openssl req -x509 -newkey rsa:2048 -noenc -keyout key.pem -out certificate.pem -days 2 \
    -subj /CN=test 2> /dev/null
openssl verify -CAfile certificate.pem certificate.pem
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    awk -v count=$((round * 1000)) 'BEGIN { while (n < count) print n++, n * n }' > message
    openssl cms -sign -binary -nodetach -in message -signer certificate.pem -inkey key.pem \
        -outform DER -out signed
    openssl cms -verify -binary -in signed -inform DER -CAfile certificate.pem -out verified \
        2> /dev/null
    cmp message verified
    openssl cms -encrypt -binary -aes-256-cbc -in message -outform DER -out encrypted \
        certificate.pem
    openssl cms -decrypt -in encrypted -inform DER -inkey key.pem -out decrypted
    cmp message decrypted
    openssl enc -chacha20 -pbkdf2 -pass pass:secret -S 0123456789abcdef -in message -out enciphered
    openssl dgst -sha3-256 -r enciphered
done
