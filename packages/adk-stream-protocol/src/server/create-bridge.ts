import type { IncomingMessage, ServerResponse } from 'node:http'

import { ApprovalGate } from '../adk/approval-gate.ts'
import type { Approval } from '../approvals/approval.ts'
import { Ledger } from '../approvals/ledger.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Store } from '../store/store.ts'
import { ChatEvents } from '../turns/chat-events.ts'
import { Turns } from '../turns/turns.ts'
import { AgentHost } from './agent-host.ts'
import { findTool } from './agent-tools.ts'
import { ApprovalDesk } from './approval-desk.ts'
import type { Backend } from './backend.ts'
import { BackendOnDemand } from './backend.ts'
import { ChatDesk } from './chat-desk.ts'
import { checkAgent } from './check-agent.ts'
import { reply } from './exchange.ts'
import { FrontDoor } from './front-door.ts'
import { answerFetch } from './host-fetch.ts'
import { answerNode } from './host-node.ts'
import { Housekeeper } from './housekeeper.ts'
import type { BridgeLimits, BridgeOptions } from './options.ts'
import { DEFAULT_LIMITS, isSessionScoped, toObservers } from './options.ts'
import type { Route } from './routes.ts'
import { signedCookie } from './signed-cookie.ts'
import type { TurnAnswers } from './turn-desk.ts'
import { TurnDesk } from './turn-desk.ts'

/** The bridge between an ADK agent and its clients, to be mounted on any HTTP host. */
export interface Bridge extends AsyncDisposable {
  /** Answers a web request: Hono, Next.js route handlers, all that speak fetch. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Answers a node:http request: node:http itself, Express, and others that hand out its objects. */
  readonly node: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /** Whether the bridge answers at this path, for hosts that serve other things beside it. */
  readonly handles: (pathname: string) => boolean
  /** Stops all turns and takes no new ones. A store that was passed in stays open. */
  readonly close: () => Promise<void>
}

/** Puts an ADK agent in front of AI SDK clients. */
export function createBridge(options: BridgeOptions): Bridge {
  checkOptions(options)
  // OB2: ADK writes prompts into its spans unless this is set. A host that wants them there sets it first.
  process.env['ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS'] ??= 'false'
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const store = new StoreOnDemand(options.store)
  const events = new ChatEvents(limits.maxTurnsPerPrincipal)
  const backend = new BackendOnDemand(async () => {
    const opened = await openBackend(options, limits, store)
    opened.ledger.onChange(({ id: approvalId, chat, state }) =>
      events.tell(chat, { type: 'approval', approvalId, state: state.name }),
    )
    return opened
  })
  const desks = openDesks(options, { limits, backend, events })
  const door = new FrontDoor({
    routes: [...PUBLIC_ROUTES, ...desks.routes],
    authenticate:
      options.authenticate ??
      signedCookie({ secret: async () => (await store.open()).secret('cookie') }),
    allowedOrigins: options.allowedOrigins ?? [],
    basePath: options.basePath ?? '',
    onError: toObservers(options).onError,
  })
  const close = async (): Promise<void> => {
    await desks.close()
    await store.close()
  }
  return {
    fetch: (request) => answerFetch(request, door, limits),
    node: (request, response) => answerNode(request, response, { door, ...limits }),
    handles: (pathname) => door.handles(pathname),
    close,
    [Symbol.asyncDispose]: close,
  }
}

const PUBLIC_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/',
    public: true,
    handle: () => reply(200, { service: 'adk-stream-protocol', status: 'running' }),
  },
  { method: 'GET', path: '/health', public: true, handle: () => reply(200, { status: 'healthy' }) },
]

function checkOptions({ agent, basePath = '' }: Partial<BridgeOptions>): void {
  if (!agent) {
    throw new TypeError('createBridge needs `agent`: pass an ADK agent, for example an LlmAgent.')
  }
  checkAgent(agent)
  if (basePath !== '' && !/^\/.*[^/]$/.test(basePath)) {
    throw new TypeError(
      'createBridge: `basePath` begins with a slash and ends without one, like "/api/agent".',
    )
  }
}

interface Desks {
  readonly routes: readonly Route[]
  readonly close: () => Promise<void>
}

function openDesks(
  options: BridgeOptions,
  {
    limits,
    backend,
    events,
  }: { limits: BridgeLimits; backend: BackendOnDemand; events: ChatEvents },
): Desks {
  const { onError, onChunk } = toObservers(options)
  const exposeState = options.exposeState ?? isSessionScoped
  const turns = new Turns({
    ...limits,
    disconnectGraceMs: options.disconnectGraceMs ?? 0,
    whileRunning: options.whileRunning ?? 'refuse',
  })
  const turnDesk = new TurnDesk(backend, turns, {
    exposeState,
    onError,
    onChunk,
    onTurn: ({ messageId, ...chat }) => events.tell(chat, { type: 'turn', messageId }),
    whilePending: options.whilePending ?? 'keep',
  })
  const follow = followWith(turnDesk, onError)
  // Nobody waits for these; what goes wrong is tried again by the next sweep.
  const resume = (approval: Approval): void => void follow(approval)
  const begin = (given: Approval): void => void follow(given, { given })
  const approvalDesk = new ApprovalDesk({ backend, limits, resume: begin })
  const chatDesk = new ChatDesk({
    backend,
    turns,
    events,
    turnDesk,
    approvalDesk,
    limits,
    exposeState,
    resume,
  })
  const housekeeper = new Housekeeper({
    backend,
    intervalMs: limits.sweepMs,
    busy: () => turns.busy,
    follow,
    onError,
  })
  return {
    routes: [...chatDesk.routes, ...approvalDesk.routes],
    close: async () => {
      turnDesk.close()
      await housekeeper.close()
      await turns.close()
    },
  }
}

/** Goes on with the turn of an approval to its end, with nobody reading. Never rejects. */
function followWith(turnDesk: TurnDesk, onError: (error: unknown) => void) {
  return async (
    { chat, messageId }: Approval,
    given: Pick<TurnAnswers, 'given'> = {},
  ): Promise<void> => {
    try {
      const answers = { outputs: [], background: true, ...given }
      const turn = await turnDesk.resume(chat, messageId, answers)
      await turn.settled
    } catch (error) {
      onError(error)
    }
  }
}

async function openBackend(
  options: BridgeOptions,
  limits: BridgeLimits,
  store: StoreOnDemand,
): Promise<Backend> {
  const { agent, appName = 'adk-stream-protocol', sessionService, approvals = {} } = options
  const { plugins, artifactService, memoryService, credentialService } = options
  const { onError } = toObservers(options)
  const opened = await store.open()
  const ledger = new Ledger({
    store: opened.approvals,
    appName,
    leaseMs: limits.leaseMs,
    quota: { perChat: limits.maxPendingPerChat, perPrincipal: limits.maxPendingPerPrincipal },
    onError,
  })
  const deadlineMs = options.approvalDeadlineMs
  const gate = new ApprovalGate({ ledger, policy: approvals, deadlineMs, onError })
  const host = new AgentHost({
    agent,
    appName,
    sessions: sessionService ?? opened.sessions,
    gate,
    ...(plugins && { plugins }),
    ...(artifactService && { artifactService }),
    ...(memoryService && { memoryService }),
    ...(credentialService && { credentialService }),
  })
  return { host, ledger, findTool: (toolName) => findTool(agent, toolName), appName }
}

/** The store of the host, or one of our own that is opened when something needs it. */
class StoreOnDemand {
  readonly #given: Store | Promise<Store> | undefined
  #own: Promise<Store> | undefined

  constructor(given: Store | Promise<Store> | undefined) {
    this.#given = given
    // Whether it could be opened is for the first request to find out.
    if (given instanceof Promise) given.catch(() => undefined)
  }

  async open(): Promise<Store> {
    if (this.#given) return this.#given
    this.#own ??= openSqliteStore({ path: ':memory:' })
    return this.#own
  }

  async close(): Promise<void> {
    const own = await this.#own
    await own?.close()
  }
}
