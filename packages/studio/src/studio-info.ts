import { z } from 'zod'

/** A tool of an agent. */
export const ToolInfo = z.object({
  name: z.string(),
  description: z.string().optional(),
  /** The JSON schema of its arguments. Without one, the tool takes none. */
  parameters: z.record(z.string(), z.unknown()).optional(),
  /** Whether a person must approve its calls: all of them, some of them, or none. Left out if it is not known. */
  approval: z.enum(['always', 'sometimes', 'never']).optional(),
})
export type ToolInfo = z.infer<typeof ToolInfo>

/** A part of an agent: a node of its graph. */
const GraphNode = z.object({
  /** Unique in the graph. */
  id: z.string(),
  /** The name that events have as their author, or the name of a tool. */
  name: z.string(),
  kind: z.enum(['agent', 'workflow', 'function', 'tool', 'remote']),
  description: z.string().optional(),
  model: z.string().optional(),
})

/** An agent that a chat can be with. */
export const AgentInfo = z.object({
  name: z.string(),
  description: z.string().optional(),
  /** The tools of the agent and of the agents below it. */
  tools: z.array(ToolInfo).default([]),
  /** The agent, the agents below it, and their tools. */
  graph: z
    .object({
      nodes: z.array(GraphNode),
      edges: z.array(z.object({ from: z.string(), to: z.string(), label: z.string().optional() })),
    })
    .optional(),
})
export type AgentInfo = z.infer<typeof AgentInfo>

/** A person for whom the page can be used. */
const Person = z.object({
  id: z.string(),
  name: z.string(),
  roles: z.array(z.string()).default([]),
})

/** Why the code of the agent could not be loaded again. The page shows it, and still uses the previous version. */
const StudioProblem = z.object({
  message: z.string(),
  file: z.string().optional(),
  line: z.int().positive().optional(),
  column: z.int().positive().optional(),
  /** The lines of the file around the error, as text. */
  codeFrame: z.string().optional(),
})
/** Why the code of the agent could not be loaded again. */
export type StudioProblem = z.infer<typeof StudioProblem>

/** The files that a message may contain, by default. */
const FILES = {
  types: ['image/png', 'image/jpeg', 'image/webp', 'image/gif'],
  maxBytes: 5 * 1_048_576,
}

/** The prices of models as one text, as in the environment variable `MODEL_PRICES`: `gemini-2.5-flash=0.30/2.50`, with commas between models. */
export const ModelPrices = z
  .string()
  .regex(
    /^[\w.-]+=\d+(?:\.\d+)?\/\d+(?:\.\d+)?(?:,\s*[\w.-]+=\d+(?:\.\d+)?\/\d+(?:\.\d+)?)*$/,
    'is not a list of prices. Set it to US dollars per million tokens in and out, like gemini-2.5-flash=0.30/2.50, with commas between models.',
  )
  .transform((text) =>
    Object.fromEntries(
      text.split(',').map((entry) => {
        const [model = '', prices = ''] = entry.trim().split('=')
        const [input = 0, output = 0] = prices.split('/').map(Number)
        return [model, { input, output }]
      }),
    ),
  )

/** The response of `GET /studio`: what the page shows about the agents, the model and the person. */
export const StudioInfo = z.object({
  /** The name of the application. Default: that of the page. */
  title: z.string().optional(),
  /** The agents that a chat can be with. The first one is the default. */
  agents: z.array(AgentInfo).default([]),
  /** `sse` (the agent over HTTP), `live` (the agent over a WebSocket), and the modes that a plug-in adds. */
  modes: z.array(z.string()).default(['sse', 'live']),
  model: z.string(),
  /** The model of live conversations. */
  liveModel: z.string().optional(),
  /** Whether the emulator replies instead of a model. It does not understand speech. */
  emulated: z.boolean().default(false),
  /** Whether this page can sign in to other services. */
  signIn: z.boolean().default(false),
  /** The channel of `notify` that sends to browsers (`webPush`). Default: the page offers notifications only while it is open. */
  push: z.string().optional(),
  /** Whether people can name somebody who decides in their place. The server sets it by itself. */
  delegations: z.boolean().default(false),
  /** The files that a message may contain. */
  files: z.object({ types: z.array(z.string()), maxBytes: z.int().positive() }).default(FILES),
  /** The prices of models in US dollars per million tokens, for an estimate of the cost. */
  prices: z.record(z.string(), z.object({ input: z.number(), output: z.number() })).default({}),
  /** The address of the server in its network, if it can be reached there. */
  networkUrl: z.url().optional(),
  /** The person who uses this page. */
  person: Person.optional(),
  /** The people whom the person at this page can be, to try approvals by others. Empty if there is no choice. */
  people: z.array(Person).default([]),
  /** Whether the server reloads the agent when a file changes. The page then asks again and again. */
  reloads: z.boolean().default(false),
  problem: StudioProblem.optional(),
  /** Whether the bridge lets developers read and change the sessions of chats. The server sets it by itself. */
  sessions: z.boolean().default(false),
  /** Whether the page has an inspector. */
  inspector: z.boolean().default(true),
  /** For the plug-in of the page. */
  plugin: z.record(z.string(), z.unknown()).default({}),
})
export type StudioInfo = z.infer<typeof StudioInfo>

/** What a server says about itself. The rest of {@link StudioInfo} has default values. */
export type StudioDescription = z.input<typeof StudioInfo>

/** The response header with the name of the instance that responded. */
export const INSTANCE_HEADER = 'x-studio-instance'
