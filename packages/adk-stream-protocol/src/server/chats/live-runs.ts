import type { BaseAgent, RunConfig, RunnerConfig } from '@google/adk'
import { Gemini, isBaseAgent, isLlmAgent } from '@google/adk'
import { Modality } from '@google/genai'

import { ReconnectingLiveModel } from '../../gemini-live/reconnecting-model.ts'
import { toLiveAgent } from '../../gemini-live/live-agent.ts'
import { completesCalls, takesNonBlockingCalls } from '../../gemini-live/model-capabilities.ts'
import type { ApprovalPolicy } from '../../approvals/policy.ts'
import type { Approval } from '../../approvals/approval.ts'
import { LiveWatchers, type LiveWatcher } from '../../live/live-watchers.ts'
import { LiveConversation } from '../../live/live-conversation.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { Quota } from '../../turns/quota.ts'
import type { Turn } from '../../turns/turn.ts'
import type { ChatKey } from '../../turns/turn-registry.ts'
import { keyOf } from '../../turns/turn-registry.ts'
import type { Backend, LazyBackend } from './backend.ts'
import { toApprovalChat } from './backend.ts'
import type { RootAgent } from './chat-agents.ts'
import type { TurnService } from './turn-service.ts'

/** How an agent talks live. */
export interface LiveOptions {
  /** The live model, or its name. Default: the agent's own. */
  readonly model?: Gemini | string
  /** What ADK's live run is configured with. Default: it answers in sound, and writes down both sides. */
  readonly runConfig?: Partial<RunConfig>
  /** How long a person may take to decide where the policy does not say, in ms. Default 5 minutes. */
  readonly approvalDeadlineMs?: number
  /** How long a conversation is kept when everybody has left it, in ms. Default 60,000. */
  readonly graceMs?: number
}

export interface LiveRunsOptions extends LiveOptions {
  readonly backend: LazyBackend
  readonly turnService: TurnService
  /** The agents by name. */
  readonly agents: ReadonlyMap<string, RootAgent>
  readonly policy: ApprovalPolicy
  /** Whether the model is told the words of an error that a tool threw. */
  readonly exposeErrors: boolean
  /** Conversations that one principal may have open. */
  readonly maxPerPrincipal: number
  readonly services: Omit<RunnerConfig, 'agent' | 'appName' | 'sessionService'>
  readonly onError: (error: unknown) => void
}

/** An agent with the model that it talks live by. */
interface LiveModelAgent {
  readonly agent: BaseAgent
  readonly model: Gemini
}

/** A chat's live conversation, with those who follow it. */
interface LiveChat {
  readonly room: LiveWatchers
  run?: LiveConversation
  /** The conversation, while it is begun or looked at. */
  opening?: Promise<LiveConversation>
  /** When the conversation was last found to know all of its chat. */
  checkedAt?: number
  leaving?: NodeJS.Timeout
}

const MINUTE_MS = 60_000
/** How long sound goes into a conversation without another look at whether its chat went on elsewhere. */
const TRUSTED_MS = 2_000

/** The live conversations of this process: one run per chat, begun on demand, kept while somebody is there. */
export class LiveRuns {
  readonly #options: LiveRunsOptions
  readonly #agents: ReadonlyMap<string, LiveModelAgent>
  readonly #chats = new Map<string, LiveChat>()
  readonly #opening = new Map<string, Promise<void>>()
  readonly #perPrincipal: Quota
  /** Conversations that are being ended. */
  readonly #ending = new Set<LiveConversation>()
  #closed = false

  constructor(options: LiveRunsOptions) {
    this.#options = options
    this.#perPrincipal = new Quota(options.maxPerPrincipal)
    const talking = [...options.agents].map(
      ([name, agent]) => [name, toLiveModelAgent(name, agent, options.model)] as const,
    )
    this.#agents = new Map(talking)
  }

  /** Whether any conversation is open. */
  get busy(): boolean {
    return [...this.#chats.values()].some(({ run }) => run !== undefined)
  }

  /** Whether a call of any conversation waits for a decision. */
  get asks(): boolean {
    for (const { run } of this.#chats.values()) if (run?.hasApprovals === true) return true
    return false
  }

  /** Whether a client here wants to hear of the turns of a chat. */
  hasListeners(chat: ChatKey): boolean {
    return this.#chats.get(keyOf(chat))?.room.hasListeners === true
  }

  /** Whether a client here wants to hear of the turns of any chat. */
  get listened(): boolean {
    for (const { room } of this.#chats.values()) if (room.hasListeners) return true
    return false
  }

  /** The open conversation of a chat, if there is one. */
  find(chat: ChatKey): LiveConversation | undefined {
    return this.#chats.get(keyOf(chat))?.run
  }

  /** Whether a chat has a conversation, or is about to. */
  isTalking(chat: ChatKey): boolean {
    const { run, opening } = this.#chats.get(keyOf(chat)) ?? {}
    return run !== undefined || opening !== undefined
  }

  /** Notes that a turn of a chat is being opened: who looks for it meanwhile waits. */
  opening(chat: ChatKey, turn: Promise<Turn>): Promise<Turn> {
    const key = keyOf(chat)
    const opened = turn.then(ignore, ignore).finally(() => {
      if (this.#opening.get(key) === opened) this.#opening.delete(key)
    })
    this.#opening.set(key, opened)
    return turn
  }

  /** Resolves when no turn of a chat is being opened. */
  async opened(chat: ChatKey): Promise<void> {
    await this.#opening.get(keyOf(chat))
  }

  /** The conversation of a chat; it begins if there is none, or if the chat went on without it. `prepare` is done before it begins. */
  async open(chat: ChatKey, prepare?: () => Promise<void>): Promise<LiveConversation> {
    const entry = this.#enter(chat)
    entry.opening ??= this.#open(chat, entry, prepare).finally(() => {
      delete entry.opening
      // Who asked for it may have gone in the meantime.
      this.#keepFor(chat, entry)
    })
    return entry.opening
  }

  /** Resolves when no conversation of a chat is being begun: one that is has chosen the agent of the chat. */
  async begun(chat: ChatKey): Promise<void> {
    await settled(this.#chats.get(keyOf(chat))?.opening)
  }

  /** The conversation of a chat for something that comes many times a second, and in order. */
  async openForSound(chat: ChatKey, prepare?: () => Promise<void>): Promise<LiveConversation> {
    const { run, opening, checkedAt = -Infinity } = this.#enter(chat)
    const isTrusted = performance.now() - checkedAt < TRUSTED_MS
    return run && !opening && isTrusted ? run : this.open(chat, prepare)
  }

  /** Follows a chat's conversation. Gives back the way to stop, after which it is kept for a while. */
  watch(chat: ChatKey, watcher: LiveWatcher): () => void {
    const entry = this.#enter(chat)
    clearTimeout(entry.leaving)
    entry.room.add(watcher)
    return () => {
      entry.room.delete(watcher)
      this.#keepFor(chat, entry)
    }
  }

  /** Whether a conversation here has the call of an approval, and goes on by its decision. */
  holds({ chat, toolCallId }: Approval): boolean {
    return this.find(chat)?.hasCall(toolCallId) === true
  }

  /** Shows a turn that was not made by a live conversation to those who follow the chat here. */
  show(chat: ChatKey, turn: Turn): void {
    this.#chats.get(keyOf(chat))?.room.onTurn(turn)
  }

  approvalChanged(approval: Approval): void {
    this.find(approval.chat)?.approvalChanged(approval)
  }

  /** Ends the conversation of a chat with the model; its messages stay. */
  async leave(chat: ChatKey): Promise<void> {
    const entry = this.#chats.get(keyOf(chat))
    const run = entry?.run
    if (!run) return
    delete entry.run
    await run.close()
  }

  /** Ends the conversations in which nothing is being done or said. Returns whether none is left. */
  closeIdle(): boolean {
    for (const entry of this.#chats.values()) {
      const { run } = entry
      if (!run || run.isBusy || this.#ending.has(run)) continue
      this.#ending.add(run)
      void run.close().finally(() => this.#ending.delete(run))
    }
    return !this.busy && this.#ending.size === 0
  }

  /** Ends all conversations and begins no new ones, though sockets may be open for a while yet. */
  async close(): Promise<void> {
    this.#closed = true
    const chats = [...this.#chats.values()]
    this.#chats.clear()
    for (const { leaving } of chats) clearTimeout(leaving)
    await Promise.all(
      chats.map(async (entry) => {
        await settled(entry.opening)
        await entry.run?.close()
      }),
    )
  }

  /** Keeps a conversation for those who may come back, if nobody is there; where there is none, there is nothing to keep. */
  #keepFor(chat: ChatKey, entry: LiveChat): void {
    if (!entry.room.isEmpty) return
    if (entry.run || entry.opening) this.#abandonLater(chat, entry)
    else this.#forget(chat, entry)
  }

  #abandonLater(chat: ChatKey, entry: LiveChat): void {
    if (this.#closed) return
    const { graceMs = MINUTE_MS, onError } = this.#options
    clearTimeout(entry.leaving)
    entry.leaving = setTimeout(() => void this.#abandon(chat, entry).catch(onError), graceMs)
    entry.leaving.unref()
  }

  /** Ends a conversation that nobody has come back to, also one that is only being begun. */
  async #abandon(chat: ChatKey, entry: LiveChat): Promise<void> {
    await settled(entry.opening)
    if (!entry.room.isEmpty || this.#closed) return
    this.#forget(chat, entry)
    await entry.run?.close()
  }

  #enter(chat: ChatKey): LiveChat {
    const key = keyOf(chat)
    const known = this.#chats.get(key)
    if (known) return known
    const entered: LiveChat = { room: new LiveWatchers() }
    this.#chats.set(key, entered)
    return entered
  }

  #forget(chat: ChatKey, entry: LiveChat): void {
    clearTimeout(entry.leaving)
    if (this.#chats.get(keyOf(chat)) === entry) this.#chats.delete(keyOf(chat))
  }

  async #forgetWhenOver(chat: ChatKey, entry: LiveChat, run: LiveConversation): Promise<void> {
    await run.ended
    if (entry.run === run) delete entry.run
    if (!entry.run && !entry.opening && entry.room.isEmpty) this.#forget(chat, entry)
  }

  async #open(
    chat: ChatKey,
    entry: LiveChat,
    prepare?: () => Promise<void>,
  ): Promise<LiveConversation> {
    if (entry.run && !(await entry.run.isCurrent())) await this.leave(chat)
    // A run does not know what is written into its session beside it, so this is done before there is one.
    if (!entry.run) await prepare?.()
    entry.run ??= await this.#begin(chat, entry)
    entry.checkedAt = performance.now()
    return entry.run
  }

  async #begin(chat: ChatKey, entry: LiveChat): Promise<LiveConversation> {
    const backend = await this.#options.backend.get()
    const agent = this.#agents.get(await backend.agents.of(toApprovalChat(backend, chat)))
    if (!agent) throw new ProtocolError('unknown-agent')
    // From here to the run nothing is waited for, so `close` finds either this or the run.
    if (this.#closed) throw new ProtocolError('unavailable')
    const giveBack = this.#perPrincipal.take(chat.principalId)
    if (!giveBack) throw new ProtocolError('too-many-live-chats')
    try {
      const run = this.#makeRun(chat, entry.room, { backend, ...agent })
      void this.#forgetWhenOver(chat, entry, run).finally(giveBack)
      return run
    } catch (thrown) {
      giveBack()
      throw thrown
    }
  }

  #makeRun(
    chat: ChatKey,
    listener: LiveWatchers,
    { backend, agent, model }: LiveModelAgent & { readonly backend: Backend },
  ): LiveConversation {
    const { turnService, services, policy, onError, runConfig, graceMs = MINUTE_MS } = this.#options
    const { host, ledger, browserCalls, appName } = backend
    const key = toApprovalChat({ appName }, chat)
    return new LiveConversation({
      chat: key,
      browserCalls: {
        add: (call, timeoutMs) => browserCalls.add({ chat: key, ...call }, timeoutMs),
        drop: (toolCallId) => browserCalls.drop(key, [toolCallId]),
      },
      agent,
      exposeErrors: this.#options.exposeErrors,
      services: { ...services, appName, sessionService: host.sessions },
      createModel: (hooks) => new ReconnectingLiveModel(model, { hooks }),
      runConfig: { ...SPOKEN, ...runConfig },
      hasNonBlockingCalls: takesNonBlockingCalls(model.model),
      completesCalls: completesCalls(model.model),
      ledger,
      terms: { policy, deadlineMs: this.#options.approvalDeadlineMs ?? 5 * MINUTE_MS, onError },
      openTurn: (messageId, stream) =>
        turnService.streamLive(chat, messageId, { ...stream, graceMs }),
      listener,
      onError,
    })
  }
}

const SPOKEN: Partial<RunConfig> = {
  responseModalities: [Modality.AUDIO],
  inputAudioTranscription: {},
  outputAudioTranscription: {},
}

function ignore(): void {}

/** Waits for something to end, well or not: who began it is told how. */
async function settled(work: Promise<unknown> | undefined): Promise<void> {
  await work?.then(ignore, ignore)
}

/** Refuses an agent that cannot talk live now, and not when somebody wants to talk. */
function toLiveModelAgent(
  name: string,
  agent: RootAgent,
  given: Gemini | string | undefined,
): LiveModelAgent {
  if (!isBaseAgent(agent))
    throw new TypeError(
      `createBridge: \`live\` needs an agent${name === '' ? '' : `, and ${name} is none`}; ADK runs workflows only turn by turn.`,
    )
  const model = findLiveModel(agent, given)
  toLiveAgent(agent, model)
  return { agent, model }
}

function findLiveModel(agent: BaseAgent, given: Gemini | string | undefined): Gemini {
  if (typeof given === 'string') return new Gemini({ model: given })
  const model = given ?? (isLlmAgent(agent) ? agent.canonicalModel : undefined)
  if (model instanceof Gemini) return model
  throw new TypeError('createBridge: `live` needs a Gemini model: pass `live.model`.')
}
