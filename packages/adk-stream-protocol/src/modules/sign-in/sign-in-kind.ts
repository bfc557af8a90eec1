import type { AuthConfig, AuthCredential, Context } from '@google/adk'

import { toError, wrapRun } from '../../agent/adk-workarounds/guard-tool.ts'
import { PENDING } from '../../agent/call-responses.ts'
import type { ToolCall } from '../../agent/tool-call.ts'
import { chatOf } from '../../agent/tool-call.ts'
import type { Approval } from '../../approvals/approval.ts'
import type { ResolvedTerms } from '../../approvals/policy.ts'
import type { AskFollowUp, CallKind, CallPlace } from '../../calls/call-kind.ts'
import { confirmUnasked } from '../../calls/call-terms.ts'
import type { SignInTerms } from '../../protocol/sign-in-terms.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'

type Owner = Omit<AppChatRef, 'chatId'>

/** Where the credentials of people come from. */
export interface CredentialSource {
  /** Returns the sign-in that an auth config of a tool asks for. Returns undefined if its provider is not configured. */
  resolve(authConfig: AuthConfig): SignInTerms | undefined
  /** Returns the credential of a sign-in, if it is valid now. */
  load(owner: Owner): Promise<(signIn: SignInTerms) => AuthCredential | undefined>
  /**
   * Refreshes a credential that has expired, or that the service rejected (`rejected`). Returns undefined if the person has to sign in
   * again.
   */
  renew(
    owner: Owner,
    signIn: SignInTerms,
    rejected: AuthCredential | undefined,
  ): Promise<AuthCredential | undefined>
}

interface SignedIn {
  readonly isApproved: boolean
}

/** Creates the kind of calls that wait for a sign-in. Without a source of credentials, no call can ask for one. */
export function createSignInKind(source?: CredentialSource, baseUrl = ''): CallKind {
  return source ? new SignInCalls(source, baseUrl) : { ...SIGN_IN_TERMS, isEnabled: false }
}

const SIGN_IN = 'sign-in'

const SIGN_IN_TERMS = {
  name: SIGN_IN,
  asks: 'before-call',
  hasPolicy: true,
  followUp: { answered: { status: 'signed-in' } },
} as const

/**
 * Gives tools the credentials of the person who owns the chat, in memory only. A call whose person has to sign in first
 * waits for it like a call that waits for an approval.
 */
class SignInCalls implements CallKind {
  readonly name = SIGN_IN_TERMS.name
  readonly asks = SIGN_IN_TERMS.asks
  readonly isEnabled = true
  readonly hasPolicy = SIGN_IN_TERMS.hasPolicy
  readonly followUp = SIGN_IN_TERMS.followUp
  readonly #source: CredentialSource
  readonly #baseUrl: string
  // By the actions of the call, which a copy of its context shares.
  readonly #waiting = new WeakMap<Context['actions'], SignInTerms>()
  readonly #signedIn = new WeakMap<Context['actions'], SignedIn>()
  readonly #approved = new WeakMap<Context['actions'], Approval>()

  constructor(source: CredentialSource, baseUrl: string) {
    this.#source = source
    this.#baseUrl = baseUrl
  }

  toAnswerUrl({ id }: Approval): string {
    return `${this.#baseUrl}/sign-ins/${encodeURIComponent(id)}`
  }

  prepare(call: ToolCall, { host }: CallPlace): void {
    const { askFollowUp } = host
    wrapRun(call.toolContext, this, (run, toolArgs) =>
      this.#run({ ...call, toolArgs }, run, askFollowUp),
    )
  }

  /**
   * Records that the person has signed in for a call, or that a call was approved. A sign-in approves nothing, so the tool must not see a
   * confirmation, unless the call was approved before.
   */
  onClaimed({ actions }: Context, claimed: Approval, approved: Approval | undefined): void {
    if (claimed.terms.kind === SIGN_IN)
      this.#signedIn.set(actions, { isApproved: approved !== undefined })
    else this.#approved.set(actions, claimed)
  }

  /** Returns the terms of a sign-in, if the call waits for one. */
  toTerms(toolContext: Context, terms: ResolvedTerms): ResolvedTerms | undefined {
    const signIn = this.#waiting.get(toolContext.actions)
    if (!signIn) return undefined
    const { principalId } = chatOf(toolContext.invocationContext.session)
    const { idempotent, readsResult, deadlineMs } = terms
    return {
      kind: SIGN_IN,
      signIn,
      answeredBy: 'server',
      hint: `Sign in to ${signIn.label}`,
      // Only the owner of the chat can sign in for it, even if other people approve its calls.
      chain: [{ count: 1, principals: [principalId], roles: [] }],
      idempotent,
      deadlineMs,
      ...(readsResult && { readsResult }),
    }
  }

  async #run(
    call: ToolCall,
    run: () => Promise<unknown>,
    askFollowUp: AskFollowUp,
  ): Promise<unknown> {
    const { toolContext } = call
    const approval = this.#approved.get(toolContext.actions)
    const signedIn = this.#signedIn.get(toolContext.actions)
    if (signedIn && !signedIn.isApproved) await this.#removeConfirmation(call)
    const owner = chatOf(toolContext.invocationContext.session)
    // AP1220: only a tool that uses a credential needs the store.
    const find = await this.#source.load(owner).catch((error: unknown) => (): never => {
      throw toError(error)
    })
    const access = giveAccess(toolContext, this.#source, find)
    for (let isRenewed = false; ; isRenewed = true) {
      const result = await runWithoutSecrets(toolContext, access.secrets, run)
      const signIn = access.requested
      if (!signIn) return result
      access.requested = undefined
      const rejected = access.used.get(nameOf(signIn))
      const renewed = isRenewed ? undefined : await this.#source.renew(owner, signIn, rejected)
      if (renewed) access.renewed.set(nameOf(signIn), renewed)
      else if (signedIn) return describeUseless(signIn)
      else if (!approval) return this.#wait(toolContext, signIn)
      else {
        this.#waiting.set(toolContext.actions, signIn)
        return askFollowUp(call, approval)
      }
    }
  }

  #wait(toolContext: Context, signIn: SignInTerms): unknown {
    this.#waiting.set(toolContext.actions, signIn)
    toolContext.requestConfirmation({ hint: `Sign in to ${signIn.label}` })
    toolContext.actions.skipSummarization = true
    return PENDING
  }

  async #removeConfirmation(call: ToolCall): Promise<void> {
    Reflect.deleteProperty(call.toolContext, 'toolConfirmation')
    // The policy has let the call run without an approval, so the tool must not ask for one.
    await confirmUnasked(call)
  }
}

/** The credentials that a call uses. */
interface Access {
  readonly renewed: Map<string, AuthCredential>
  readonly used: Map<string, AuthCredential>
  /** The secrets of the credentials that the tool received. */
  readonly secrets: Set<string>
  /** The sign-in that the tool has requested in its last run. */
  requested: SignInTerms | undefined
}

/** Replaces the credential methods of a context. Those of ADK would write client secrets and tokens into events. */
function giveAccess(
  toolContext: Context,
  source: CredentialSource,
  find: (signIn: SignInTerms) => AuthCredential | undefined,
): Access {
  const access: Access = {
    renewed: new Map(),
    used: new Map(),
    secrets: new Set(),
    requested: undefined,
  }
  const original = toolContext.getAuthResponse.bind(toolContext)
  const getAuthResponse: Context['getAuthResponse'] = (authConfig) => {
    const signIn = source.resolve(authConfig)
    if (!signIn) return original(authConfig)
    const credential = access.renewed.get(nameOf(signIn)) ?? find(signIn)
    if (!credential) return undefined
    access.used.set(nameOf(signIn), credential)
    for (const secret of [credential.apiKey, credential.oauth2?.accessToken])
      if (secret !== undefined && secret !== '') access.secrets.add(secret)
    return structuredClone(credential)
  }
  const requestCredential: Context['requestCredential'] = (authConfig) => {
    access.requested = source.resolve(authConfig)
    if (access.requested) return
    throw new Error(
      `A tool requests a credential with the key ${JSON.stringify(authConfig.credentialKey)} and scopes that createBridge's \`signIn.providers\` does not have.`,
    )
  }
  const methods = { getAuthResponse, requestCredential }
  for (const [name, value] of Object.entries(methods))
    Object.defineProperty(toolContext, name, { value, configurable: true, writable: true })
  return access
}

/** Identifies a credential of a principal: the provider and the scopes. */
export function nameOf({ provider, scopes }: Pick<SignInTerms, 'provider' | 'scopes'>): string {
  return [provider, ...scopes.toSorted()].join(' ')
}

function describeUseless({ label }: SignInTerms): Record<string, unknown> {
  return {
    error: `Not run: ${label} did not accept the sign-in of the person. Call the tool again if they want to sign in again.`,
  }
}

const REMOVED = '[removed: a credential]'

type Secrets = ReadonlySet<string>

/**
 * Removes the credentials that a tool received from everything that would be stored or sent: its result, its error and the
 * session state that it changes. ADK's OpenAPI tools write the credential into the session state.
 */
async function runWithoutSecrets(
  toolContext: Context,
  secrets: Secrets,
  run: () => Promise<unknown>,
): Promise<unknown> {
  try {
    return clean(await run(), secrets)
  } catch (thrown) {
    throw cleanError(toError(thrown), secrets)
  } finally {
    cleanState(toolContext, secrets)
  }
}

function clean(value: unknown, secrets: Secrets): unknown {
  if (secrets.size === 0 || !contains(value, secrets)) return value
  if (typeof value === 'string') return replace(value, secrets)
  if (Array.isArray(value)) return value.map((item) => clean(item, secrets))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [replace(name, secrets), clean(item, secrets)]),
  )
}

function cleanError(error: Error, secrets: Secrets): Error {
  const texts = [error.message, error.stack ?? '', describe(error.cause)]
  if (!texts.some((text) => contains(text, secrets))) return error
  const cleaned = new Error(replace(error.message, secrets))
  cleaned.name = error.name
  cleaned.stack = replace(error.stack ?? '', secrets)
  return cleaned
}

function cleanState({ actions, invocationContext }: Context, secrets: Secrets): void {
  for (const [name, value] of Object.entries(actions.stateDelta)) {
    if (!contains(value, secrets)) continue
    Reflect.deleteProperty(actions.stateDelta, name)
    Reflect.deleteProperty(invocationContext.session.state, name)
  }
}

function contains(value: unknown, secrets: Secrets): boolean {
  const text = typeof value === 'string' ? value : describe(value)
  for (const secret of secrets)
    if (text.includes(secret) || text.includes(JSON.stringify(secret).slice(1, -1))) return true
  return false
}

function replace(text: string, secrets: Secrets): string {
  let replaced = text
  for (const secret of secrets) replaced = replaced.replaceAll(secret, REMOVED)
  return replaced
}

function describe(value: unknown): string {
  if (value instanceof Error)
    return `${value.message} ${value.stack ?? ''} ${describe(value.cause)}`
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    // A value that is not JSON cannot be stored or sent.
    return ''
  }
}
