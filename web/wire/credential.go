package wire

import "github.com/holdfast/holdfast/registry"

// CredentialRequest sets what the sources at an origin ask a collection's deposits for.
type CredentialRequest struct {
	Origin string `json:"origin" maxLength:"300" doc:"https://HOST[:PORT] or s3://BUCKET"`
	Kind   string `json:"kind" doc:"basic or bearer for a web server; s3 or default-chain for a bucket; signing for a key that callbacks are signed with"`
	Name   string `json:"name,omitempty" doc:"basic: the user; s3: the access key's id"`
	Secret string `json:"secret,omitempty" doc:"basic: the password; bearer: the token; s3: the secret key. It is sealed before it is kept, and never told again"`
	// Endpoint, Region and PathStyle are a bucket's.
	Endpoint  string `json:"endpoint,omitempty" doc:"s3, default-chain: the address of a service that is not AWS's own"`
	Region    string `json:"region,omitempty" doc:"s3: needed without an endpoint; default-chain: that of the workers when empty"`
	PathStyle bool   `json:"path_style,omitempty" doc:"s3, default-chain: the bucket's name stands in the path, as services other than AWS's mostly want it"`
}

// Credential is what is shown of one: all but the secret.
type Credential struct {
	registry.Credential

	KeyID string `json:"key_id" doc:"The key that the secret is sealed under; one that nothing is sealed under any more can be taken away"`
}
