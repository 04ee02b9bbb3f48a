package wire

import "github.com/holdfast/holdfast/registry"

// CredentialRequest sets the credential of a collection for an origin.
type CredentialRequest struct {
	Origin string `json:"origin" maxLength:"300" doc:"https://HOST[:PORT] or s3://BUCKET"`
	Kind   string `json:"kind" doc:"basic or bearer for a web server; s3 or default-chain for a bucket; signing for a key that callbacks are signed with"`
	Name   string `json:"name,omitempty" doc:"basic: the user; s3: the access key's id"`
	Secret string `json:"secret,omitempty" doc:"basic: the password; bearer: the token; s3: the secret key. Stored encrypted and never returned"`
	// Endpoint, Region and PathStyle are for buckets.
	Endpoint  string `json:"endpoint,omitempty" doc:"s3, default-chain: the address of a service other than AWS"`
	Region    string `json:"region,omitempty" doc:"s3: required without an endpoint; default-chain: when empty, that of the workers"`
	PathStyle bool   `json:"path_style,omitempty" doc:"s3, default-chain: put the bucket's name into the path, as most services other than AWS need"`
}

// Credential is a stored credential without its secret.
type Credential struct {
	registry.Credential

	KeyID string `json:"key_id" doc:"The key that the secret is encrypted with; a key that no secret uses can be removed"`
}
