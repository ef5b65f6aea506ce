/* Passkeys: a form with data-passkey asks the browser for one, and sends what it says.
   data-passkey="create" has its options with it; "get" asks the server for a challenge first. */
"use strict";

/** Bytes as the text that addresses can hold, and back. */
function toText(bytes) {
  const binary = String.fromCharCode(...new Uint8Array(bytes));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function toBytes(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (sign) => sign.charCodeAt(0));
}

/** What the server sends has text where browsers want bytes. */
function withBytes(options) {
  const listed = (rows) => rows?.map((row) => ({ ...row, id: toBytes(row.id) }));
  const made = { ...options, challenge: toBytes(options.challenge) };
  if (options.user) made.user = { ...options.user, id: toBytes(options.user.id) };
  if (options.excludeCredentials) made.excludeCredentials = listed(options.excludeCredentials);
  if (options.allowCredentials) made.allowCredentials = listed(options.allowCredentials);
  return made;
}

/** And what browsers say has bytes where the server wants text. */
function asText(credential) {
  const said = credential.response;
  const names = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"];
  const response = {};
  for (const name of names) if (said[name]) response[name] = toText(said[name]);
  return JSON.stringify({
    id: credential.id,
    rawId: toText(credential.rawId),
    type: credential.type,
    response,
    clientExtensionResults: {},
  });
}

async function optionsOf(form) {
  if (form.dataset.options) return JSON.parse(form.dataset.options);
  const answer = await fetch(form.dataset.optionsFrom, {
    method: "POST",
    headers: { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value },
  });
  if (!answer.ok) throw new Error(answer.status === 429 ? "Too many tries. Wait a while." : "");
  return answer.json();
}

async function ask(form) {
  const publicKey = withBytes(await optionsOf(form));
  const kind = form.dataset.passkey;
  const credential = await navigator.credentials[kind]({ publicKey });
  form.elements.credential.value = asText(credential);
  form.submit();
}

/** Browsers give reasons for engineers; whoever closes the window of the browser knows why. */
function reason(error) {
  if (error.name === "InvalidStateError") return "This device has a passkey of your account already.";
  if (error.name === "NotAllowedError") return "No passkey was used. Try again when you are ready.";
  return error.message || "That did not work. Try again, or use another way.";
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential) continue;
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const told = form.querySelector("[role=alert]");
    told.hidden = true;
    ask(form).catch((error) => {
      told.textContent = reason(error);
      told.hidden = false;
    });
  });
}
