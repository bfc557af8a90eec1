import type { IncomingMessage, ServerResponse } from 'node:http'

import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Store } from '../store/store.ts'
import { AgentHost } from './agent-host.ts'
import { ChatDesk } from './chat-desk.ts'
import { reply } from './exchange.ts'
import { FrontDoor } from './front-door.ts'
import { answerFetch } from './host-fetch.ts'
import { answerNode } from './host-node.ts'
import type { BridgeOptions } from './options.ts'
import { DEFAULT_LIMITS, toObservers } from './options.ts'
import type { Route } from './routes.ts'
import { signedCookie } from './signed-cookie.ts'

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
  const desk = new ChatDesk(() => openHost(options, store), options, limits)
  const door = new FrontDoor({
    routes: [...PUBLIC_ROUTES, ...desk.routes],
    authenticate:
      options.authenticate ??
      signedCookie({ secret: async () => (await store.open()).secret('cookie') }),
    allowedOrigins: options.allowedOrigins ?? [],
    basePath: options.basePath ?? '',
    onError: toObservers(options).onError,
  })
  const close = async (): Promise<void> => {
    await desk.close()
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
    access: 'public',
    handle: () => reply(200, { service: 'adk-stream-protocol', status: 'running' }),
  },
  {
    method: 'GET',
    path: '/health',
    access: 'public',
    handle: () => reply(200, { status: 'healthy' }),
  },
]

function checkOptions({ agent, basePath = '' }: Partial<BridgeOptions>): void {
  if (!agent) {
    throw new TypeError('createBridge needs `agent`: pass an ADK agent, for example an LlmAgent.')
  }
  if (basePath !== '' && !/^\/.*[^/]$/.test(basePath)) {
    throw new TypeError(
      'createBridge: `basePath` begins with a slash and ends without one, like "/api/agent".',
    )
  }
}

async function openHost(options: BridgeOptions, store: StoreOnDemand): Promise<AgentHost> {
  const { agent, appName = 'adk-stream-protocol', sessionService } = options
  const { plugins, artifactService, memoryService, credentialService } = options
  return new AgentHost({
    agent,
    appName,
    sessions: sessionService ?? (await store.open()).sessions,
    onError: toObservers(options).onError,
    ...(plugins && { plugins }),
    ...(artifactService && { artifactService }),
    ...(memoryService && { memoryService }),
    ...(credentialService && { credentialService }),
  })
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
