import { appendFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AuthConfig, BaseAgent, BaseTool, BaseToolset } from '@google/adk'
import {
  AgentTool,
  createEvent,
  FunctionNode,
  FunctionTool,
  isBaseTool,
  RequestInput,
  SequentialAgent,
  Workflow,
} from '@google/adk'
import { Modality } from '@google/genai'
import {
  type Emulator,
  firstOf,
  type Responder,
  scriptResponder,
  startEmulator,
} from 'gemini-emulator'
import { z } from 'zod'

import { listen } from '../../../../../test/support/listen.ts'
import { type Bridge, type BridgeOptions, createBridge } from '../../../src/server/index.ts'
import type { Store } from '../../../src/store/index.ts'
import { toUpgradeListener } from '../../../src/use/node.ts'
import { assistant, EmulatedGemini } from '../../support/agents.ts'
import { checkOnce, nodeWorkflow, payingWorkflow } from './node-workflow.ts'

/** Called when a call reaches a moment of its execution. The call continues when the promise resolves. */
export type Reached = (moment: string, chatId: string) => Promise<void>

export interface PaymentServerOptions extends Partial<Omit<BridgeOptions, 'store' | 'agent'>> {
  readonly store: Store
  /** The file that gets a line for each payment. */
  readonly effects: string
  /**
   * The steps around the agent. Default: none.
   * - `sequence`, `workflow`: the agent is the first step, and the second one says `Second.`
   * - `tool`: the payment itself is the first node, and the second one says `Second.`
   * - `question`: the first node asks a person, and the second one says `Booked.`
   * - `nodes`: the agent is the first of several nodes with effects, see `nodeWorkflow`
   */
  readonly inSteps?: 'sequence' | 'workflow' | 'tool' | 'question' | 'nodes' | undefined
  /** Tools in addition to the payments. */
  readonly tools?: readonly (BaseTool | BaseToolset)[]
  /** Agents that the agent can transfer to. */
  readonly subAgents?: readonly BaseAgent[]
  /** The live model of sockets. Default: there are no live conversations. */
  readonly liveModel?: string
  /** Whether the live model speaks. Default: it writes. */
  readonly isSpoken?: boolean
  /** The emulator of the models. Default: a new one. */
  readonly modelUrl?: string
  readonly reached?: Reached
  /** Receives a line for each request that has ended. */
  readonly onRequest?: (line: string) => void
}

/** A server with payments behind approvals: real HTTP, real ADK, real ledger; only the model is emulated. */
export interface PaymentServer extends AsyncDisposable {
  readonly url: string
  readonly bridge: Bridge
  readonly emulator: Emulator
  readonly errors: unknown[]
}

/** Opens a server on a free port. The header `x-user` is the principal, with the roles of `x-roles`. */
export async function openPaymentServer(options: PaymentServerOptions): Promise<PaymentServer> {
  const {
    effects,
    reached = async () => undefined,
    liveModel,
    isSpoken = false,
    modelUrl,
    inSteps,
    tools: more = [],
    subAgents = [],
    onRequest,
    ...bridgeOptions
  } = options
  const emulator = await startEmulator({
    keepRequests: 50,
    ...(inSteps !== undefined && {
      respond: firstOf(saySecond, checkOnce, scriptResponder, sayOk),
    }),
  })
  const baseUrl = modelUrl ?? emulator.baseUrl
  const errors: unknown[] = []
  const model = new EmulatedGemini(baseUrl)
  const paying = payments(effects, reached)
  // Agents that are used as tools: the agency asks the desk, which pays.
  const atDesk = [...paying, ...more]
  const desk = new AgentTool({ agent: assistant(model, { name: 'desk', tools: atDesk }) })
  const agency = new AgentTool({ agent: assistant(model, { name: 'agency', tools: [desk] }) })
  const tools = [...paying, desk, agency, ...more]
  const first = assistant(model, { tools, subAgents: [...subAgents] })
  const bridge = createBridge({
    agent: addSteps(),
    authenticate: ({ headers }) => {
      const id = headers.get('x-user')
      const roles = headers.get('x-roles')?.split(',') ?? []
      return id === null ? undefined : { id, roles }
    },
    onError: (error) => errors.push(error),
    ...(liveModel !== undefined && {
      live: {
        model: new EmulatedGemini(baseUrl, liveModel),
        ...(!isSpoken && { runConfig: { responseModalities: [Modality.TEXT] } }),
      },
    }),
    ...bridgeOptions,
    approvals: bridgeOptions.approvals ?? { top_up: { idempotent: true } },
  })
  function addSteps(): BaseAgent | Workflow {
    if (inSteps === undefined) return first
    if (inSteps === 'nodes') return nodeWorkflow(first, { model, effects, reached })
    return addSecondStep(inSteps === 'tool' ? paying[0] : first, model, inSteps)
  }
  const server = createServer((request, response) => {
    if (onRequest) response.once('close', () => onRequest(describeRequest(request, response)))
    void bridge.node(request, response)
  })
  server.on('upgrade', toUpgradeListener(bridge))
  // If the server closed an idle connection while a client reuses it, that would look like a crash.
  server.keepAliveTimeout = 600_000
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    bridge,
    emulator,
    errors,
    async [Symbol.asyncDispose]() {
      await bridge.close({ drainMs: 0 })
      server.close()
      server.closeAllConnections()
      await emulator.close()
    },
  }
}

function describeRequest(
  { method, url, headers }: IncomingMessage,
  { statusCode, writableFinished }: ServerResponse,
): string {
  const end = writableFinished ? 'ended' : 'was cut off'
  return `${method} ${url} of ${String(headers['x-user'])} ${end} with ${statusCode}`
}

function addSecondStep(
  first: BaseAgent | BaseTool | undefined,
  model: EmulatedGemini,
  kind: 'sequence' | 'workflow' | 'tool' | 'question',
): BaseAgent | Workflow {
  if (kind === 'question') return askingWorkflow()
  const second = assistant(model, { name: 'second', instruction: 'I am second.' })
  if (isBaseTool(first)) return payingWorkflow(first, second)
  if (!first) throw new Error('There is no first step.')
  if (kind === 'workflow') return new Workflow({ name: 'steps', edges: [['START', first, second]] })
  // oxlint-disable-next-line typescript/no-deprecated -- Deprecated in favour of Workflow, and in use.
  return new SequentialAgent({ name: 'steps', subAgents: [first, second] })
}

/** A workflow with a function that runs a node that asks, and replies with the answer. */
function askingWorkflow(): Workflow {
  const question = new FunctionNode('question', async function* ask() {
    const responseSchema = z.object({ nights: z.number().int() })
    yield new RequestInput({ message: 'How many nights?', interruptId: 'nights', responseSchema })
  })
  const ask = new FunctionNode(
    'ask',
    async (context) => {
      const { output } = await context.runNode(question)
      // Without a text.
      return createEvent({ output })
    },
    { rerunOnResume: true },
  )
  const book = new FunctionNode('book', (_context, input) => createBooking(input))
  return new Workflow({ name: 'steps', edges: [['START', ask, book]] })
}

function createBooking(input: unknown): string {
  return JSON.stringify(input) === '{"nights":3}' ? 'Booked.' : `Heard ${JSON.stringify(input)}.`
}

const sayOk: Responder = () => [{ type: 'say', text: 'OK.' }]

const saySecond: Responder = ({ systemInstruction }) =>
  systemInstruction.includes('I am second') ? [{ type: 'say', text: 'Second.' }] : undefined

const Payment = z.object({ to: z.string(), amount: z.number().positive() })

/** `pay` and `top_up` need approval, `look` does not. Each effect is a line of the effects file. */
function payments(effects: string, reached: Reached): FunctionTool<typeof Payment>[] {
  const make = (name: string, requireConfirmation: boolean): FunctionTool<typeof Payment> =>
    paymentTool({ name, requireConfirmation }, effects, reached)
  return [make('pay', true), make('top_up', true), make('look', false)]
}

/** A tool whose effect is a line of the effects file. */
export function paymentTool(
  { name, requireConfirmation }: { readonly name: string; readonly requireConfirmation: boolean },
  effects: string,
  reached: Reached,
): FunctionTool<typeof Payment> {
  return new FunctionTool({
    name,
    description: `The tool ${name}.`,
    parameters: Payment,
    requireConfirmation,
    execute: async ({ to, amount }, toolContext) => {
      const { id: chatId = '', userId = '' } = toolContext?.invocationContext.session ?? {}
      await reached('before effect', chatId)
      const key = toolContext?.functionCallId ?? ''
      const effect: Effect = { chatId, userId, name, to, amount, key }
      appendFileSync(effects, `${JSON.stringify(effect)}\n`)
      await reached('after effect', chatId)
      return { paid: amount, to }
    },
  })
}

/** A tool that needs an approval and the API key of the person. */
export function chargeTool(effects: string, reached: Reached): BaseTool {
  const config: AuthConfig = {
    credentialKey: 'bank',
    authScheme: { type: 'apiKey', in: 'header', name: 'x-key' },
  }
  return new FunctionTool({
    name: 'charge',
    description: 'Charges the account of the person.',
    parameters: Payment,
    requireConfirmation: true,
    execute: async ({ to, amount }, toolContext) => {
      if (!toolContext?.getAuthResponse(config)) {
        toolContext?.requestCredential(config)
        return { status: 'pending' }
      }
      const { id: chatId, userId } = toolContext.invocationContext.session
      await reached('before effect', chatId)
      const key = toolContext.functionCallId ?? ''
      const effect: Effect = { chatId, userId, name: 'charge', to, amount, key }
      appendFileSync(effects, `${JSON.stringify(effect)}\n`)
      await reached('after effect', chatId)
      return { charged: amount }
    },
  })
}

/** What a tool did. */
export interface Effect {
  readonly chatId: string
  readonly userId: string
  readonly name: string
  readonly to: string
  readonly amount: number
  /** The idempotency key with which an external service would detect a repetition. */
  readonly key: string
}
