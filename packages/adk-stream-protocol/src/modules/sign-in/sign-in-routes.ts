import { randomBytes } from 'node:crypto'

import * as z from 'zod'

import type { Approval, ApprovalStateName } from '../../approvals/approval.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { SignInTerms } from '../../protocol/sign-in-terms.ts'
import type { Principal } from '../../server/auth/authenticate.ts'
import { readCookies } from '../../server/auth/authenticate.ts'
import type { Backend } from '../../server/chats/backend.ts'
import { toDecider } from '../../server/chats/decisions/decision-results.ts'
import type { Exchange, FileReply, Reply } from '../../server/http/exchange.ts'
import { checkInput, readJson, reply, withHeaders } from '../../server/http/exchange.ts'
import type { AuthenticatedRequest, PublicRequest, Route } from '../../server/http/http-router.ts'
import type { Core } from '../module.ts'
import { isDeclined } from './oauth-client.ts'
import type { SignInOptions } from './sign-in-options.ts'
import type { SignIns } from './sign-ins.ts'

interface SignInParts {
  readonly options: SignInOptions
  /** Returns the sign-ins, which are open when the backend is. */
  readonly findSignIns: () => SignIns | undefined
}

/** The routes of sign-ins: begin one for a question, the callback of OAuth providers, list, and revoke. */
export function signInRoutes(core: Core, parts: SignInParts): readonly Route[] {
  const { onError } = core
  const cookie = cookieOf(parts.options)

  const callback = async ({ name: provider, exchange }: PublicRequest): Promise<Reply> => {
    const { search, searchParams } = exchange.url
    const { signIns, ledger } = await openSignIns(core, parts)
    const state = searchParams.get('state') ?? ''
    const browser = cookie.read(exchange) ?? ''
    const returned = await signIns.take({ provider, state, browser })
    if (!returned) return signInPage('unknown')
    const { owner, approvalId } = returned
    const principal = { id: owner.principalId }
    const asked = await ledger.get(approvalId, toDecider(principal))
    // A question that was answered or has expired gets no credential.
    if (!isOpen(asked)) return signInPage('late')
    try {
      await signIns.finish(returned, search)
    } catch (error) {
      if (await isDeclined(error)) return signInPage('declined')
      onError(error)
      return signInPage('failed')
    }
    try {
      await answerQuestion(core, { signIns, owner, provider, approvalId })
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      return signInPage('late')
    }
    return signInPage('signed-in')
  }

  const list = async ({ principal }: AuthenticatedRequest): Promise<Reply> => {
    const { signIns, appName } = await openSignIns(core, parts)
    const owner = { appName, principalId: principal.id }
    return reply(200, { signIns: await signIns.list(owner) })
  }

  const remove = async ({ principal, name }: AuthenticatedRequest): Promise<Reply> => {
    const { signIns, appName } = await openSignIns(core, parts)
    const owner = { appName, principalId: principal.id }
    const result = await signIns.remove(owner, name, onError)
    if (result.removed === 0) throw new ProtocolError('unknown-sign-in')
    return reply(200, { revoked: result.revoked })
  }

  return [
    { method: 'GET', path: '/sign-ins', handle: list },
    {
      method: 'POST',
      path: '/sign-ins/:id',
      handle: (request) => beginSignIn(core, { ...parts, cookie }, request),
    },
    {
      method: 'GET',
      path: '/sign-ins/:id',
      handle: (request) => openSignIn(core, { ...parts, cookie }, request),
    },
    { method: 'DELETE', path: '/sign-ins/:name', handle: remove },
    { method: 'GET', path: '/sign-in/:name/callback', access: 'public', handle: callback },
  ]
}

/** Returns the backend with the sign-ins. */
async function openSignIns(
  { backend }: Core,
  { findSignIns }: SignInParts,
): Promise<OpenedSignIns> {
  const { ledger, appName } = await backend.get()
  const signIns = findSignIns()
  // The backend opens its kinds of calls, and so the sign-ins.
  if (!signIns) throw new ProtocolError('unavailable')
  return { ledger, appName, signIns }
}

interface OpenedSignIns extends Pick<Backend, 'ledger' | 'appName'> {
  readonly signIns: SignIns
}

/** Begins a sign-in for a question. With an API key, the sign-in ends at once. */
async function beginSignIn(
  core: Core,
  parts: BeginParts,
  { principal, id, exchange }: AuthenticatedRequest,
): Promise<Reply> {
  const { apiKey, prompt } = checkInput(BeginBody, await readJson(exchange, core.limits), BAD_BODY)
  const opened = await openSignIns(core, parts)
  const { signIns } = opened
  const { owner, signIn } = await findQuestion(opened, principal, id)
  if (signIn.type === 'apiKey') {
    if (apiKey === undefined) throw new ProtocolError('bad-request', { message: BAD_BODY })
    if (!(await signIns.saveApiKey(owner, signIn, apiKey)))
      throw new ProtocolError('sign-in-failed', {
        message: `${signIn.label} does not accept this key. Check it and try again.`,
      })
    await answerQuestion(core, { signIns, owner, provider: signIn.provider, approvalId: id })
    return reply(200, { signedIn: true })
  }
  const question = { owner, signIn, approvalId: id }
  const { begun, headers } = await beginAt(core, parts, { signIns, question, exchange, prompt })
  return withHeaders(reply(200, begun), headers)
}

/** Opens the page of a sign-in, for clients that show nothing but its address: that of the provider, or a form for an API key. */
async function openSignIn(
  core: Core,
  parts: BeginParts,
  { principal, id, exchange }: AuthenticatedRequest,
): Promise<Reply> {
  try {
    const opened = await openSignIns(core, parts)
    const { owner, signIn } = await findQuestion(opened, principal, id)
    if (signIn.type === 'apiKey') return keyPage(signIn)
    const question = { owner, signIn, approvalId: id }
    const { signIns } = opened
    const { begun, headers } = await beginAt(core, parts, { signIns, question, exchange })
    return withHeaders(reply(303), { ...headers, location: begun.url })
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    if (error.code === 'sign-in-failed') return signInPage('failed')
    return signInPage(error.status === 409 || error.status === 410 ? 'late' : 'unknown')
  }
}

interface BeginParts extends SignInParts {
  readonly cookie: BrowserCookie
}

/** Begins a sign-in at a provider. Returns the address, and the header that binds the sign-in to this browser. */
async function beginAt(
  { onError }: Core,
  { cookie }: BeginParts,
  {
    signIns,
    question: { owner, signIn, approvalId },
    exchange,
    prompt,
  }: {
    readonly signIns: SignIns
    readonly question: Question & { readonly approvalId: string }
    readonly exchange: Exchange
    readonly prompt?: z.infer<typeof BeginBody>['prompt']
  },
) {
  const browser = cookie.read(exchange) ?? randomBytes(32).toString('base64url')
  const begun = await signIns
    .begin(owner, signIn, { approvalId, browser, prompt })
    .catch((cause: unknown) => {
      onError(cause)
      throw new ProtocolError('sign-in-failed', {
        message: `${signIn.label} cannot be reached right now. Try again in a moment.`,
      })
    })
  if (!begun) throw new ProtocolError('unknown-approval')
  return { begun, headers: { 'set-cookie': cookie.write(browser) } }
}

const BeginBody = z.strictObject({
  /** The key, for a service with API keys. */
  apiKey: z.string().trim().min(1).max(4_096).optional(),
  /** Lets the person choose an account, for an OAuth provider. */
  prompt: z.enum(['login', 'select_account']).optional(),
})

const BAD_BODY =
  'Send { "apiKey": the key } for a service with API keys, or { "prompt"?: "login" or "select_account" } for others.'

interface Question {
  readonly owner: { readonly appName: string; readonly principalId: string }
  readonly signIn: SignInTerms
}

/** Returns the pending sign-in of an approval. Throws if the principal may not answer it. */
async function findQuestion(
  { ledger, appName }: OpenedSignIns,
  principal: Principal,
  id: string,
): Promise<Question> {
  const approval = await ledger.get(id, toDecider(principal))
  const signIn = approval?.terms.signIn
  if (!approval || !signIn) throw new ProtocolError('unknown-approval')
  // The credential is that of the person who owns the chat.
  if (approval.chat.principalId !== principal.id) throw new ProtocolError('not-allowed')
  const { name } = approval.state
  if (name === 'expired') throw new ProtocolError('approval-expired')
  if (name === 'cancelled') throw new ProtocolError('approval-cancelled')
  if (name !== 'requested') throw new ProtocolError('approval-decided')
  return { owner: { appName, principalId: principal.id }, signIn }
}

function isOpen(approval: Approval | undefined): boolean {
  return approval?.state.name === 'requested' && approval.terms.kind === 'sign-in'
}

/** A credential that was stored for a question. */
interface GivenCredential extends Pick<Question, 'owner'> {
  readonly signIns: SignIns
  readonly provider: string
  readonly approvalId: string
}

/** Answers a question with the credential that was just stored. If the question ended without an answer, removes the credential. */
async function answerQuestion(
  { backend, decisions, onError }: Core,
  { signIns, owner, provider, approvalId }: GivenCredential,
): Promise<void> {
  const principal = { id: owner.principalId }
  try {
    await decisions.answerByServer(principal, approvalId)
  } catch (error) {
    const { ledger } = await backend.get()
    // Another sign-in of the person may have answered the question: then they stay signed in.
    const ended = await ledger.get(approvalId, toDecider(principal))
    if (!wasAnswered(ended)) await signIns.remove(owner, provider, onError)
    throw error
  }
}

/** Whether a sign-in of the person has answered a question. */
function wasAnswered(approval: Approval | undefined): boolean {
  return approval !== undefined && !UNANSWERED.has(approval.state.name)
}

const UNANSWERED: ReadonlySet<string> = new Set<ApprovalStateName>([
  'requested',
  'denied',
  'expired',
  'cancelled',
])

interface BrowserCookie {
  readonly read: (exchange: Exchange) => string | undefined
  readonly write: (value: string) => string
}

/** A cookie that binds a sign-in to the browser that began it. Without it, a person could be made to sign in for somebody else. */
function cookieOf({ baseUrl, attemptMs = 600_000 }: SignInOptions): BrowserCookie {
  const isSecure = baseUrl.startsWith('https:')
  const name = isSecure ? '__Host-adk_sign_in' : 'adk_sign_in'
  const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${Math.ceil(attemptMs / 1_000)}`
  return {
    read: ({ headers }) => readCookies(headers, name).find((value) => /^[\w-]{43}$/.test(value)),
    write: (value) => `${name}=${value}; ${attributes}${isSecure ? '; Secure' : ''}`,
  }
}

type Outcome = 'signed-in' | 'declined' | 'failed' | 'late' | 'unknown'

const PAGES: Readonly<
  Record<Outcome, readonly [status: number, english: string, japanese: string]>
> = {
  'signed-in': [
    200,
    'You are signed in. You can close this window.',
    'サインインしました。このウィンドウは閉じてかまいません。',
  ],
  declined: [
    200,
    'You did not sign in. Close this window, and decline or try again in the chat.',
    'サインインは行われませんでした。このウィンドウを閉じ、チャットで辞退するか、もう一度お試しください。',
  ],
  failed: [
    502,
    'The sign-in did not succeed. Close this window and try again in the chat.',
    'サインインできませんでした。このウィンドウを閉じ、チャットでもう一度お試しください。',
  ],
  late: [
    410,
    'The chat no longer waits for this sign-in. Close this window.',
    'チャットはこのサインインをもう待っていません。このウィンドウを閉じてください。',
  ],
  unknown: [
    400,
    'This sign-in has expired, was already used, or began in another browser. Close this window and try again in the chat.',
    'このサインインは期限切れか、使用済みか、別のブラウザーで始まったものです。このウィンドウを閉じ、チャットでもう一度お試しください。',
  ],
}

/** Returns the page that a person sees after the provider. It closes itself after a sign-in, and never redirects. */
function signInPage(outcome: Outcome): FileReply {
  const [status, english, japanese] = PAGES[outcome]
  const close = outcome === 'signed-in' ? 'window.close()' : ''
  return htmlPage({
    status,
    title: english.split('.', 1)[0] ?? '',
    content: `<p>${english}</p><p lang="ja">${japanese}</p>`,
    // The code and the state do not stay in the history of the browser.
    script: `history.replaceState(null,'',location.pathname);${close}`,
  })
}

/** Returns the form for an API key. It sends the key to the endpoint at its own address. */
function keyPage({ label, help }: SignInTerms): FileReply {
  const [, english, japanese] = PAGES['signed-in']
  const name = escape(label)
  return htmlPage({
    status: 200,
    title: name,
    content: `<form><p><label>${name}: API key<br><input type="password" autocomplete="off" required autofocus></label></p>${help === undefined ? '' : `<p>${escape(help)}</p>`}<p><button>Sign in / <span lang="ja">サインイン</span></button></p></form><div role="status"></div>`,
    script: `const [form]=document.forms,status=document.querySelector('[role=status]')
form.onsubmit=async(event)=>{event.preventDefault()
const body=JSON.stringify({apiKey:form.querySelector('input').value})
try{const response=await fetch(location.pathname,{method:'POST',headers:{'content-type':'application/json'},body})
const {error}=await response.json()
if(error)status.textContent=error.message
else{form.remove();status.innerHTML=${JSON.stringify(`<p>${english}</p><p lang="ja">${japanese}</p>`)};window.close()}
}catch(error){status.textContent=String(error)}}`,
  })
}

interface HtmlPage {
  readonly status: number
  readonly title: string
  readonly content: string
  readonly script: string
}

function htmlPage({ status, title, content, script }: HtmlPage): FileReply {
  const nonce = randomBytes(16).toString('base64')
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${title}</title><body><main>${content}</main><script nonce="${nonce}">${script}</script></body></html>`
  return {
    type: 'file',
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': `default-src 'none'; connect-src 'self'; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      'referrer-policy': 'no-referrer',
    },
    bytes: Buffer.from(html),
  }
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
