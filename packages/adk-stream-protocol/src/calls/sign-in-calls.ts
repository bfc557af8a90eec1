import type { AuthConfig, AuthCredential, Context } from '@google/adk'
import { ToolConfirmation } from '@google/adk'

import { toError, wrapRun } from '../agent/adk-workarounds/guard-tool.ts'
import { PENDING } from '../agent/call-responses.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { Approval } from '../approvals/approval.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { needsConfirmation } from './call-terms.ts'
import type { SignInTerms } from '../protocol/sign-in-terms.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'

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
  readonly isApproved?: boolean
}

/** Asks for the sign-in of a call that was approved. Returns the result of the call until the person has signed in. */
type AskLate = (call: ToolCall, approval: Approval) => Promise<Record<string, unknown>>

/**
 * Gives tools the credentials of the person who owns the chat, in memory only. A call whose person has to sign in first
 * waits for it like a call that waits for an approval.
 */
export class SignInCalls {
  readonly #source: CredentialSource
  // By the actions of the call, which a copy of its context shares.
  readonly #waiting = new WeakMap<Context['actions'], SignInTerms>()
  readonly #signedIn = new WeakMap<Context['actions'], SignedIn>()
  readonly #approved = new WeakMap<Context['actions'], Approval>()
  readonly #ask: AskLate

  /** `ask` asks for the sign-in of a call that was approved. */
  constructor(source: CredentialSource, ask: AskLate) {
    this.#source = source
    this.#ask = ask
  }

  /** Call this before a tool runs. */
  prepare(call: ToolCall): void {
    wrapRun(call.toolContext, this, (run) => this.#run(call, run))
  }

  /**
   * Records that the person has signed in for this call. A sign-in approves nothing, so the tool must not see a confirmation, unless the
   * call was approved before (`isApproved`).
   */
  markSignedIn(toolContext: Context, { isApproved = false }: SignedIn = {}): void {
    this.#signedIn.set(toolContext.actions, { isApproved })
  }

  /** Records that a call was approved. */
  markApproved(toolContext: Context, approval: Approval): void {
    this.#approved.set(toolContext.actions, approval)
  }

  /** Returns the terms of the question that a call asks: those of a sign-in, if it waits for one. */
  toTerms(toolContext: Context, terms: ResolvedTerms): ResolvedTerms {
    const signIn = this.#waiting.get(toolContext.actions)
    if (!signIn) return terms
    const { principalId } = chatOf(toolContext.invocationContext.session)
    const { idempotent, readsResult, deadlineMs } = terms
    return {
      kind: 'sign-in',
      signIn,
      hint: `Sign in to ${signIn.label}`,
      // Only the owner of the chat can sign in for it, whoever approves its calls.
      chain: [{ count: 1, principals: [principalId], roles: [] }],
      idempotent,
      deadlineMs,
      ...(readsResult && { readsResult }),
    }
  }

  async #run(call: ToolCall, run: () => Promise<unknown>): Promise<unknown> {
    const { toolContext } = call
    const approval = this.#approved.get(toolContext.actions)
    const signedIn = this.#signedIn.get(toolContext.actions)
    if (signedIn && !signedIn.isApproved) await this.#removeConfirmation(call)
    const owner = chatOf(toolContext.invocationContext.session)
    const filter = new SecretFilter(toolContext)
    const access = new Access(toolContext, filter, this.#source)
    access.give(await this.#source.load(owner))
    for (let isRenewed = false; ; isRenewed = true) {
      const result = await filter.run(run)
      const signIn = access.takeRequest()
      if (!signIn) return result
      const rejected = access.used(signIn)
      const renewed = isRenewed ? undefined : await this.#source.renew(owner, signIn, rejected)
      if (renewed) access.add(signIn, renewed)
      else if (signedIn) return describeUseless(signIn)
      else if (!approval) return this.#wait(toolContext, signIn)
      else {
        this.#waiting.set(toolContext.actions, signIn)
        return this.#ask(call, approval)
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
    const { toolContext } = call
    Reflect.deleteProperty(toolContext, 'toolConfirmation')
    // The policy has let the call run without an approval, so the tool must not ask for one.
    if (await needsConfirmation(call))
      toolContext.toolConfirmation = new ToolConfirmation({ confirmed: true })
  }
}

/** Replaces the credential methods of a context. Those of ADK would write client secrets and tokens into events. */
class Access {
  readonly #added = new Map<string, AuthCredential>()
  readonly #used = new Map<string, AuthCredential>()
  #find: (signIn: SignInTerms) => AuthCredential | undefined = () => undefined
  #request: SignInTerms | undefined

  constructor(toolContext: Context, filter: SecretFilter, source: CredentialSource) {
    const original = toolContext.getAuthResponse.bind(toolContext)
    const getAuthResponse: Context['getAuthResponse'] = (authConfig) => {
      const signIn = source.resolve(authConfig)
      if (!signIn) return original(authConfig)
      const credential = this.#added.get(nameOf(signIn)) ?? this.#find(signIn)
      if (!credential) return undefined
      this.#used.set(nameOf(signIn), credential)
      filter.add(credential)
      return structuredClone(credential)
    }
    const requestCredential: Context['requestCredential'] = (authConfig) => {
      this.#request = source.resolve(authConfig)
      if (this.#request) return
      throw new Error(
        `A tool requests a credential with the key ${JSON.stringify(authConfig.credentialKey)} and scopes that createBridge's \`signIn.providers\` does not have.`,
      )
    }
    const methods = { getAuthResponse, requestCredential }
    for (const [name, value] of Object.entries(methods))
      Object.defineProperty(toolContext, name, { value, configurable: true, writable: true })
  }

  give(find: (signIn: SignInTerms) => AuthCredential | undefined): void {
    this.#find = find
  }

  add(signIn: SignInTerms, credential: AuthCredential): void {
    this.#added.set(nameOf(signIn), credential)
  }

  used(signIn: SignInTerms): AuthCredential | undefined {
    return this.#used.get(nameOf(signIn))
  }

  takeRequest(): SignInTerms | undefined {
    const request = this.#request
    this.#request = undefined
    return request
  }
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

/**
 * Removes the credentials that a tool received from everything that would be stored or sent: its result, its error and the
 * session state that it changes. ADK's OpenAPI tools write the credential into the session state.
 */
class SecretFilter {
  readonly #toolContext: Context
  readonly #secrets = new Set<string>()

  constructor(toolContext: Context) {
    this.#toolContext = toolContext
  }

  add({ apiKey, oauth2 }: AuthCredential): void {
    for (const secret of [apiKey, oauth2?.accessToken])
      if (secret !== undefined && secret !== '') this.#secrets.add(secret)
  }

  async run(run: () => Promise<unknown>): Promise<unknown> {
    try {
      return this.#clean(await run())
    } catch (thrown) {
      throw this.#cleanError(toError(thrown))
    } finally {
      this.#cleanState()
    }
  }

  #clean(value: unknown): unknown {
    if (this.#secrets.size === 0 || !this.#contains(value)) return value
    if (typeof value === 'string') return this.#replace(value)
    if (Array.isArray(value)) return value.map((item) => this.#clean(item))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [this.#replace(name), this.#clean(item)]),
    )
  }

  #cleanError(error: Error): Error {
    const texts = [error.message, error.stack ?? '', describe(error.cause)]
    if (!texts.some((text) => this.#contains(text))) return error
    const cleaned = new Error(this.#replace(error.message))
    cleaned.name = error.name
    cleaned.stack = this.#replace(error.stack ?? '')
    return cleaned
  }

  #cleanState(): void {
    const { actions, invocationContext } = this.#toolContext
    for (const [name, value] of Object.entries(actions.stateDelta)) {
      if (!this.#contains(value)) continue
      Reflect.deleteProperty(actions.stateDelta, name)
      Reflect.deleteProperty(invocationContext.session.state, name)
    }
  }

  #contains(value: unknown): boolean {
    const text = typeof value === 'string' ? value : describe(value)
    for (const secret of this.#secrets)
      if (text.includes(secret) || text.includes(JSON.stringify(secret).slice(1, -1))) return true
    return false
  }

  #replace(text: string): string {
    let replaced = text
    for (const secret of this.#secrets) replaced = replaced.replaceAll(secret, REMOVED)
    return replaced
  }
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
