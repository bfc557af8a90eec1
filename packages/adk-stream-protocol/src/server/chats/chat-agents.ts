import type { RunnerConfig } from '@google/adk'

import { callInTime } from '../../shared/async.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ClientContext } from '../../protocol/stream-request.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { ChatEntry, ChatStore } from '../../store/store.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'

/**
 * The root of an ADK run: an agent or a workflow.
 *
 * @inline
 */
export type RootAgent = NonNullable<RunnerConfig['agent']>

/**
 * The input of `chooseAgent`: the first message of a chat.
 *
 * @inline
 */
export interface AgentChoice extends ClientContext {
  /** The principal, with the attributes that `authenticate` returned. */
  readonly principal: Principal
  readonly chatId: string
  /** The agent that the client requests with `agent` in the body or `?agent=` in the URL. It may be any string. */
  readonly agent: string | undefined
}

/**
 * Returns the name of the agent for a new chat.
 *
 * @inline
 */
export type ChooseAgent = (choice: AgentChoice) => string | Promise<string>

/** The parts of a request that select an agent. */
export interface AgentRequest {
  /** The context of a message. Audio and text frames have none. */
  readonly context?: ClientContext | undefined
  /** The agent that a frame names. A message names it in its context. */
  readonly named?: string | undefined
  /** The agent that the URL names for new chats, with `?agent=`. */
  readonly addressed?: string | undefined
}

/** The agent for a message. */
export interface ChosenAgent {
  readonly name: string
  /** Whether the client named this agent, so that no other agent may reply. */
  readonly isNamed: boolean
}

/** The name of the only agent of a bridge with `agent`. */
export const UNNAMED_AGENT = ''

export interface ChatAgentsOptions {
  /** The names of the agents, the default agent first. */
  readonly names: readonly string[]
  readonly chooseAgent: ChooseAgent | undefined
  readonly chats: Pick<ChatStore, 'find' | 'assignAgent'>
  /** Whether the session of a chat exists. */
  readonly chatExists: (chat: AppChatRef) => Promise<boolean>
  readonly onError: (error: unknown) => void
}

/**
 * The agent of each chat. The first message of a chat selects its agent, and the chat keeps it. A chat without a recorded agent is older
 * than the option `agents` and uses the first agent.
 */
export class ChatAgents {
  readonly #options: ChatAgentsOptions
  readonly #names: ReadonlySet<string>
  readonly #first: string
  /** Unknown agents that were reported. */
  readonly #reported = new Set<string>()

  constructor(options: ChatAgentsOptions) {
    this.#options = options
    this.#names = new Set(options.names)
    this.#first = options.names[0] ?? UNNAMED_AGENT
  }

  /** Whether the bridge has one agent without a name, for all chats. */
  get #isSingle(): boolean {
    return this.#first === UNNAMED_AGENT
  }

  /** Returns the name of the agent of a chat. Throws `unknown-agent` if the bridge does not have it. */
  async of(chat: AppChatRef): Promise<string> {
    const name = await this.#nameOf(chat)
    if (!this.#names.has(name)) throw new ProtocolError('unknown-agent')
    return name
  }

  /** Returns false if the bridge does not have the agent of a chat. Reports each missing agent once: another server may have it. */
  async has(chat: AppChatRef): Promise<boolean> {
    const name = await this.#nameOf(chat)
    if (this.#names.has(name)) return true
    if (!this.#reported.has(name)) {
      this.#reported.add(name)
      const advice = `Calls of the agent ${name} are pending, and this bridge does not have the agent. They stay pending. Add it to \`agents\`.`
      this.#options.onError(new Error(advice))
    }
    return false
  }

  /** Returns the agent of a chat, or the agent to record for a new chat. */
  async choose(
    principal: Principal,
    chat: AppChatRef,
    { context = { body: {} }, ...asked }: AgentRequest,
  ): Promise<ChosenAgent> {
    if (this.#isSingle) return { name: UNNAMED_AGENT, isNamed: false }
    const { chooseAgent } = this.#options
    const named = readName(context.body['agent']) ?? asked.named
    // With `chooseAgent`, the server chooses, and the client only makes a request.
    const isNamed = !chooseAgent && named !== undefined
    const name = await this.#known(chat)
    if (name !== undefined) {
      if (!this.#names.has(name)) throw new ProtocolError('unknown-agent')
      if (isNamed && named !== name) throw new ProtocolError('other-agent')
      return { name, isNamed }
    }
    const agent = named ?? asked.addressed
    if (!chooseAgent) return { name: this.#check(agent ?? this.#first), isNamed }
    // A JavaScript function may return any value.
    const input = { principal, chatId: chat.chatId, agent, ...context }
    const chosen: unknown = await callInTime('`chooseAgent`', () => chooseAgent(input))
    if (typeof chosen === 'string' && this.#names.has(chosen)) return { name: chosen, isNamed }
    throw new TypeError(`\`chooseAgent\` returned ${String(chosen)}, which is not in \`agents\`.`)
  }

  /** Records the agent of a new chat. Throws `other-agent` if the client named this agent and the chat has got another one meanwhile. */
  async record(chat: AppChatRef, { name, isNamed }: ChosenAgent): Promise<void> {
    if (this.#isSingle || (await this.#recorded(chat)) === name) return
    const assigned = await this.#options.chats.assignAgent(chat, name)
    if (assigned !== name && isNamed) throw new ProtocolError('other-agent')
  }

  /** Returns the agent of a chat for the chat list. */
  describe({ agent = this.#first }: ChatEntry): { readonly agent?: string } {
    return this.#isSingle ? {} : { agent }
  }

  async #nameOf(chat: AppChatRef): Promise<string> {
    return this.#isSingle ? UNNAMED_AGENT : ((await this.#recorded(chat)) ?? this.#first)
  }

  /** Returns the agent of a chat, or undefined if the chat does not exist. */
  async #known(chat: AppChatRef): Promise<string | undefined> {
    const recorded = await this.#recorded(chat)
    if (recorded !== undefined || !(await this.#options.chatExists(chat))) return recorded
    // The agent is recorded before the session is created, so a chat that was created since the first read has its agent now.
    return (await this.#recorded(chat)) ?? this.#first
  }

  async #recorded({ chatId, ...owner }: AppChatRef): Promise<string | undefined> {
    const found = await this.#options.chats.find(owner, [chatId])
    return found.get(chatId)?.agent
  }

  #check(name: string): string {
    if (this.#names.has(name)) return name
    throw new ProtocolError('bad-request', { message: 'There is no agent with this name.' })
  }
}

function readName(value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value
  throw new ProtocolError('bad-request', { message: 'agent: A name is a string.' })
}
