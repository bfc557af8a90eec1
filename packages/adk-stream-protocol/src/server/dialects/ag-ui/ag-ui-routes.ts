import { z } from 'zod'

import { ProtocolError } from '../../../protocol/errors.ts'
import { ChatId } from '../../../protocol/stream-request.ts'
import type { Principal } from '../../auth/authenticate.ts'
import type { Reply } from '../../http/exchange.ts'
import { checkInput, readAgent, readJson, reply } from '../../http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../../http/http-router.ts'
import { DEFAULT_AGENT, describeCapabilities, describeRuntime } from './capabilities.ts'
import { readClick } from './cards.ts'
import type { RunInput } from './run-input.ts'
import { readRunInput } from './run-input.ts'
import type { RunServiceParts } from './run-service.ts'
import { RunService } from './run-service.ts'

interface AgUiOptions extends Omit<RunServiceParts, 'hasCards'> {
  /** The agents by name. The only agent of a bridge may have an empty name. */
  readonly agents: ReadonlyMap<string, unknown>
}

/**
 * The routes of AG-UI: one for any client (`HttpAgent`), and those that a CopilotKit page asks of its runtime. A page chooses cards by the
 * path, because CopilotKit appends paths to its `runtimeUrl`.
 */
export function agUiRoutes(options: AgUiOptions): readonly Route[] {
  return [
    ...profileRoutes(ROOT, { ...options, hasCards: false }),
    ...profileRoutes(`${ROOT}/cards`, { ...options, hasCards: true }),
  ]
}

function profileRoutes(root: string, options: AgUiOptions & RunServiceParts): readonly Route[] {
  const { limits, hasCards } = options
  const names = [...options.agents.keys()]
  const service = new RunService(options)
  const readInput = (body: unknown, { exchange }: AuthenticatedRequest): RunInput => {
    const input = readRunInput(body)
    const language = exchange.headers.get('accept-language') ?? undefined
    return hasCards ? { ...readClick(input), language } : input
  }

  const run = (
    request: AuthenticatedRequest,
    body: unknown,
    agent: string | undefined,
  ): Promise<Reply> =>
    service.run(request.principal, readInput(body, request), toAddressed(names, agent))
  const connect = (request: AuthenticatedRequest, body: unknown): Promise<Reply> =>
    service.connect(request.principal, readInput(body, request))
  const stop = async (principal: Principal, threadId: string): Promise<Reply> => {
    await service.stop(principal, threadId)
    return reply(200, { stopped: true })
  }
  const info = async (): Promise<Reply> => reply(200, describeRuntime(names, hasCards))
  const readBody = ({ exchange }: AuthenticatedRequest): Promise<unknown> =>
    readJson(exchange, limits)

  const runOrCall = async (request: AuthenticatedRequest): Promise<Reply> => {
    const body = await readBody(request)
    const { principal } = request
    const call = Call.safeParse(body).data
    if (!call) return run(request, body, readAgent(request.exchange).addressed)
    const { agentId, threadId } = call.params ?? {}
    switch (call.method) {
      case 'info':
        return info()
      case 'agent/run':
        return run(request, call.body, agentId)
      case 'agent/connect':
        return connect(request, call.body)
      case 'agent/stop':
        return stop(principal, checkInput(ChatId, threadId, 'Send `params.threadId`.'))
    }
  }

  // A run may only read. The service refuses the others.
  const isServedWhileClosing = true
  return [
    { method: 'POST', path: root, isServedWhileClosing, handle: runOrCall },
    {
      method: 'GET',
      path: `${root}/capabilities`,
      handle: async () => reply(200, describeCapabilities()),
    },
    { method: 'GET', path: `${root}/info`, handle: info },
    {
      method: 'POST',
      path: `${root}/agent/:name/run`,
      isServedWhileClosing,
      handle: async (request) => run(request, await readBody(request), request.name),
    },
    {
      method: 'POST',
      path: `${root}/agent/:name/connect`,
      isServedWhileClosing,
      handle: async (request) => connect(request, await readBody(request)),
    },
    {
      method: 'POST',
      path: `${root}/agent/:name/stop/:id`,
      isServedWhileClosing,
      handle: ({ principal, id }) => stop(principal, id),
    },
  ]
}

const ROOT = '/ag-ui'

/** The single route of CopilotKit: the method and its parameters are in the body. */
const Call = z.object({
  method: z.enum(['info', 'agent/run', 'agent/connect', 'agent/stop']),
  params: z
    .object({ agentId: z.string().max(256).optional(), threadId: z.string().max(256).optional() })
    .optional(),
  body: z.unknown().optional(),
})

/** Returns the agent for a new chat. Throws if the server does not have the agent that the client names. */
function toAddressed(names: readonly string[], agent: string | undefined): string | undefined {
  if (agent === undefined || names.includes(agent)) return agent
  if (agent === DEFAULT_AGENT) return undefined
  throw new ProtocolError('unknown-agent', { message: `The server has no agent ${agent}.` })
}
