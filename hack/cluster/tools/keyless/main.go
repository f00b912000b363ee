// Signs images as GitHub Actions and the public Sigstore would, without either: the authority that certifies an identity and the log of
// signatures live as long as one run. It reads from standard input what Input says.
//
// It leaves in the directory trusted_root.json, which `cosign verify --trusted-root` reads, and tuf/, the same as a TUF repository.
package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	ct "github.com/google/certificate-transparency-go"
	"github.com/google/certificate-transparency-go/tls"
	ctx509 "github.com/google/certificate-transparency-go/x509"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/cosign/v3/pkg/oci/remote"
	bundles "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	rekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/signature"
	sigdsse "github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/theupdateframework/go-tuf/v2/metadata"
	"google.golang.org/protobuf/encoding/protojson"
)

// Input is what one run signs.
type Input struct {
	Directory    string
	Attestations []Attestation
}

// Attestation is a signed statement about an image. cosign's own signature is one, of type https://sigstore.dev/cosign/sign/v1.
type Attestation struct {
	// The image to which it is attached, by digest.
	Image string
	// The subject alternative name of the certificate, a URI, and who vouches for it.
	Identity, Issuer string
	// The digest of which it speaks; empty: that of the image.
	Subject       string
	PredicateType string
	Predicate     json.RawMessage
}

const payloadType = "application/vnd.in-toto+json"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var input Input
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		return err
	}
	authority, err := newAuthority()
	if err != nil {
		return err
	}
	for _, attestation := range input.Attestations {
		if err := authority.attest(ctx, attestation); err != nil {
			return fmt.Errorf("%s: %w", attestation.Image, err)
		}
	}
	trusted, err := authority.trustedRoot()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(input.Directory, "trusted_root.json"), trusted, 0o600); err != nil {
		return err
	}
	return writeRepository(filepath.Join(input.Directory, "tuf"), trusted)
}

type authority struct {
	root, intermediate  *x509.Certificate
	key, certificateLog *ecdsa.PrivateKey
	log                 *ca.VirtualSigstore
}

func newAuthority() (*authority, error) {
	log, err := ca.NewVirtualSigstore()
	if err != nil {
		return nil, err
	}
	rootCertificate, rootKey, err := ca.GenerateRootCa()
	if err != nil {
		return nil, err
	}
	intermediate, key, err := ca.GenerateFulcioIntermediate(rootCertificate, rootKey)
	if err != nil {
		return nil, err
	}
	certificateLog, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return &authority{rootCertificate, intermediate, key, certificateLog, log}, nil
}

func (a *authority) attest(ctx context.Context, wanted Attestation) error {
	digest, err := name.NewDigest(wanted.Image)
	if err != nil {
		return err
	}
	subject := wanted.Subject
	if subject == "" {
		subject = digest.DigestStr()
	}
	statement, err := json.Marshal(map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []any{map[string]any{"digest": map[string]string{"sha256": strings.TrimPrefix(subject, "sha256:")}}},
		"predicateType": wanted.PredicateType,
		"predicate":     wanted.Predicate,
	})
	if err != nil {
		return err
	}
	signed, err := a.sign(ctx, wanted, statement)
	if err != nil {
		return err
	}
	return remote.WriteAttestationNewBundleFormat(digest, signed, wanted.PredicateType)
}

// sign returns a Sigstore bundle.
func (a *authority) sign(ctx context.Context, wanted Attestation, statement []byte) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := a.certify(wanted.Identity, wanted.Issuer, key)
	if err != nil {
		return nil, err
	}
	signer, err := signature.LoadECDSASigner(key, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	envelopes, err := dsse.NewEnvelopeSigner(&sigdsse.SignerAdapter{SignatureSigner: signer, Pub: key.Public()})
	if err != nil {
		return nil, err
	}
	envelope, err := envelopes.SignPayload(ctx, payloadType, statement)
	if err != nil {
		return nil, err
	}
	raw, err := base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig)
	if err != nil {
		return nil, err
	}
	entry, err := a.log.GenerateTlogEntry(certificate, envelope, raw, time.Now().Unix(), true)
	if err != nil {
		return nil, err
	}
	logged, err := a.logged(entry)
	if err != nil {
		return nil, err
	}
	return protojson.Marshal(&bundles.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: &bundles.VerificationMaterial{
			Content:     &bundles.VerificationMaterial_Certificate{Certificate: &common.X509Certificate{RawBytes: certificate.Raw}},
			TlogEntries: []*rekor.TransparencyLogEntry{logged},
		},
		Content: &bundles.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload:     statement,
			PayloadType: payloadType,
			Signatures:  []*protodsse.Signature{{Sig: raw}},
		}},
	})
}

// logged returns an entry with what its type says and the log's promise, which says when it was made.
func (a *authority) logged(entry *tlog.Entry) (*rekor.TransparencyLogEntry, error) {
	logged := entry.TransparencyLogEntry()
	promise, err := a.log.RekorSignPayload(tlog.RekorPayload{
		Body:           base64.StdEncoding.EncodeToString(logged.CanonicalizedBody),
		IntegratedTime: logged.IntegratedTime,
		LogIndex:       logged.LogIndex,
		LogID:          hex.EncodeToString(logged.LogId.KeyId),
	})
	if err != nil {
		return nil, err
	}
	logged.KindVersion = &rekor.KindVersion{Kind: "dsse", Version: "0.0.1"}
	logged.InclusionPromise = &rekor.InclusionPromise{SignedEntryTimestamp: promise}
	return logged, nil
}

// certify returns a certificate as Fulcio issues it for a workflow: the identity is a URI, and a log of certificates has seen it.
func (a *authority) certify(identity, issuer string, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	uri, err := url.Parse(identity)
	if err != nil {
		return nil, err
	}
	encoded, err := asn1.MarshalWithParams(issuer, "utf8")
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		URIs:         []*url.URL{uri},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(9 * time.Minute),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(issuer)},
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: encoded},
		},
	}
	// The log signs the certificate without its own extension (RFC 6962, section 3.2), which therefore comes last.
	seen, err := x509.CreateCertificate(rand.Reader, template, a.intermediate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	timestamps, err := a.seen(seen)
	if err != nil {
		return nil, err
	}
	template.ExtraExtensions = append(template.ExtraExtensions, timestamps)
	der, err := x509.CreateCertificate(rand.Reader, template, a.intermediate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// seen returns the extension in which the log of certificates says that it has seen one.
func (a *authority) seen(der []byte) (pkix.Extension, error) {
	none := pkix.Extension{}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return none, err
	}
	public, err := x509.MarshalPKIXPublicKey(a.certificateLog.Public())
	if err != nil {
		return none, err
	}
	promise := ct.SignedCertificateTimestamp{
		SCTVersion: ct.V1,
		LogID:      ct.LogID{KeyID: sha256.Sum256(public)},
		Timestamp:  uint64(time.Now().UnixMilli()),
	}
	input, err := ct.SerializeSCTSignatureInput(promise, ct.LogEntry{Leaf: ct.MerkleTreeLeaf{TimestampedEntry: &ct.TimestampedEntry{
		EntryType: ct.PrecertLogEntryType,
		Timestamp: promise.Timestamp,
		PrecertEntry: &ct.PreCert{
			IssuerKeyHash:  sha256.Sum256(a.intermediate.RawSubjectPublicKeyInfo),
			TBSCertificate: certificate.RawTBSCertificate,
		},
	}}})
	if err != nil {
		return none, err
	}
	digest := sha256.Sum256(input)
	signed, err := ecdsa.SignASN1(rand.Reader, a.certificateLog, digest[:])
	if err != nil {
		return none, err
	}
	promise.Signature = ct.DigitallySigned{
		Algorithm: tls.SignatureAndHashAlgorithm{Hash: tls.SHA256, Signature: tls.ECDSA},
		Signature: signed,
	}
	one, err := tls.Marshal(promise)
	if err != nil {
		return none, err
	}
	list, err := tls.Marshal(ctx509.SignedCertificateTimestampList{SCTList: []ctx509.SerializedSCT{{Val: one}}})
	if err != nil {
		return none, err
	}
	value, err := asn1.Marshal(list)
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: value}, err
}

func (a *authority) trustedRoot() ([]byte, error) {
	logs := a.log.RekorLogs()
	for id, log := range logs {
		raw, err := hex.DecodeString(id)
		if err != nil {
			return nil, err
		}
		log.ID = raw
	}
	fulcio := &root.FulcioCertificateAuthority{
		URI:                 "https://fulcio.invalid",
		Root:                a.root,
		Intermediates:       []*x509.Certificate{a.intermediate},
		ValidityPeriodStart: time.Now().Add(-time.Hour),
	}
	public, err := x509.MarshalPKIXPublicKey(a.certificateLog.Public())
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(public)
	certificateLogs := map[string]*root.TransparencyLog{hex.EncodeToString(id[:]): {
		BaseURL:             "https://ctfe.invalid",
		ID:                  id[:],
		ValidityPeriodStart: time.Now().Add(-time.Hour),
		HashFunc:            crypto.SHA256,
		SignatureHashFunc:   crypto.SHA256,
		PublicKey:           a.certificateLog.Public(),
	}}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{fulcio}, certificateLogs, nil, logs)
	if err != nil {
		return nil, err
	}
	return trusted.MarshalJSON()
}

// writeRepository writes a TUF repository that has one target, trusted_root.json. All of its roles have one key.
func writeRepository(directory string, trusted []byte) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	signer, err := signature.LoadSigner(private, crypto.Hash(0))
	if err != nil {
		return err
	}
	key, err := metadata.KeyFromPublicKey(public)
	if err != nil {
		return err
	}
	expires := time.Now().Add(24 * time.Hour).UTC()
	rootRole, targets, snapshot, timestamp := metadata.Root(expires), metadata.Targets(expires), metadata.Snapshot(expires), metadata.Timestamp(expires)
	for _, role := range []string{metadata.ROOT, metadata.TARGETS, metadata.SNAPSHOT, metadata.TIMESTAMP} {
		if err := rootRole.Signed.AddKey(key, role); err != nil {
			return err
		}
	}
	target, err := metadata.TargetFile().FromBytes("trusted_root.json", trusted, "sha256")
	if err != nil {
		return err
	}
	targets.Signed.Targets["trusted_root.json"] = target

	if err := os.MkdirAll(filepath.Join(directory, "targets"), 0o700); err != nil {
		return err
	}
	stored := filepath.Join(directory, "targets", fmt.Sprintf("%x.trusted_root.json", []byte(target.Hashes["sha256"])))
	if err := os.WriteFile(stored, trusted, 0o600); err != nil {
		return err
	}
	if _, err := rootRole.Sign(signer); err != nil {
		return err
	}
	if _, err := targets.Sign(signer); err != nil {
		return err
	}
	if _, err := snapshot.Sign(signer); err != nil {
		return err
	}
	if _, err := timestamp.Sign(signer); err != nil {
		return err
	}
	for file, write := range map[string]func(string, bool) error{
		"1.root.json": rootRole.ToFile, "root.json": rootRole.ToFile,
		"1.targets.json": targets.ToFile, "1.snapshot.json": snapshot.ToFile, "timestamp.json": timestamp.ToFile,
	} {
		if err := write(filepath.Join(directory, file), false); err != nil {
			return err
		}
	}
	return nil
}
