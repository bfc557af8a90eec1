import { asRunnableRoot } from '@google/adk'
import * as z from 'zod'

import { AgentServicesSchema } from '../agent/agent-services.ts'
import { PolicyTermsSchema, findTermsFault } from '../approvals/policy.ts'
import { refuseOtherCopy } from '../agent/tree/adk-copies.ts'
import type { ModuleOptions } from './bridge-modules.ts'
import type { ModuleList } from './open-modules.ts'
import { checkRecordModelCalls } from './chats/model-calls.ts'
import type { RetentionOptions } from './chats/recovery/sweepers.ts'
import type { ContextOptions } from './chats/request-context.ts'
import type { TurnRunConfig } from './chats/host/agent-host.ts'
import type { AllowedHosts } from './http/hosts-and-proxies.ts'
import { checkAllowedHosts, isNetwork, readOrigin } from './http/hosts-and-proxies.ts'
import { LimitsSchema } from './settings/limits.ts'
import {
  ApprovalDeadline,
  AtLeastOne,
  Count,
  Deadline,
  Duration,
  Interval,
  Method,
  Service,
} from './settings/option-schemas.ts'
import type { BridgeOptions, SeveralAgentsOptions } from './options.ts'
import { isObject, isRecord } from '../protocol/guards.ts'
import { suggestName } from '../shared/suggest-name.ts'

/** Throws a `TypeError` that names the first unknown or invalid option. `ofModules`: the schemas of the options of modules. */
export function checkOptions(
  options: unknown,
  ofModules: ModuleList<ModuleOptions>['options'],
): void {
  if (!isObject(options)) throw new TypeError('createBridge needs an options object.')
  checkRoots(options)
  const schema = z.strictObject({ ...Options, ...ofModules })
  refuseFirst(schema.safeParse(options).error, { schema })
  checkRecordModelCalls(options)
  const { approvals = {}, allowedHosts = [], retention = {}, sessionService } = options
  // The schema has checked the type.
  for (const plugin of (options['plugins'] ?? []) as unknown[]) refuseOtherCopy(plugin, 'plugins')
  refuseOtherCopy(sessionService, 'sessionService')
  if (sessionService !== undefined && isObject(retention) && retention['chatsMs'] !== undefined)
    throw new TypeError(
      'createBridge: `retention.chatsMs` removes chats from the store, but `sessionService` stores them elsewhere. Remove them there.',
    )
  // The schema has checked the type.
  checkAllowedHosts(allowedHosts as AllowedHosts)
  // The verdict of a policy function is checked when it is called.
  if (isObject(approvals))
    for (const [toolName, verdict] of Object.entries(approvals)) checkVerdict(toolName, verdict)
}

function checkVerdict(toolName: string, verdict: unknown): void {
  if (typeof verdict === 'function' || typeof verdict === 'boolean') return
  const path = ['approvals', toolName]
  if (!isObject(verdict))
    throw new TypeError(
      `createBridge: \`${path.join('.')}\` must be true, false, terms, or a function.`,
    )
  refuseFirst(PolicyTermsSchema.safeParse(verdict).error, { path, schema: PolicyTermsSchema })
  const found = findTermsFault(PolicyTermsSchema.parse(verdict))
  if (!found) return
  const place = [...path, ...(found.field === undefined ? [] : [found.field])]
  throw new TypeError(`createBridge: \`${place.join('.')}\` ${found.fault}`)
}

interface Checked {
  readonly schema: z.ZodObject
  /** Where the checked value is in the options. Default: it is the options. */
  readonly path?: readonly PropertyKey[]
}

function refuseFirst(error: z.ZodError | undefined, checked: Checked): void {
  const [issue] = error?.issues ?? []
  if (issue) throw new TypeError(`createBridge: ${describeIssue(issue, checked)}`)
}

/** Throws if `agent` or `agents` is missing or invalid. */
function checkRoots({ agent, agents, ...options }: Record<string, unknown>): void {
  if (agents === undefined) {
    if (options['chooseAgent'] !== undefined)
      throw new TypeError('createBridge: `chooseAgent` needs `agents`.')
    return checkRoot(agent, 'agent')
  }
  if (agent !== undefined)
    throw new TypeError('createBridge: pass either `agent` or `agents`, not both.')
  if (!isRecord(agents) || isRunnable(agents))
    throw new TypeError('createBridge: `agents` must be an object that maps names to agents.')
  const entries = Object.entries(agents)
  if (entries.length === 0) throw new TypeError('createBridge: `agents` is empty.')
  for (const [name, root] of entries) {
    if (!AGENT_NAME.test(name))
      throw new TypeError(
        `createBridge: \`agents\` has the name ${JSON.stringify(name)}. A name starts with a letter, followed by letters, digits, \`.\`, \`_\` or \`-\`, and has at most 64 characters.`,
      )
    checkRoot(root, `agents.${name}`)
  }
  if (options['sessionService'] !== undefined && options['store'] === undefined)
    throw new TypeError(
      'createBridge: `agents` with a `sessionService` also needs a `store`, which records the agent of each chat.',
    )
}

/** Starts with a letter, because JavaScript sorts keys that are numbers before all others. */
const AGENT_NAME = /^[a-z][\w.-]{0,63}$/i

function checkRoot(agent: unknown, option: string): void {
  if (agent === undefined || agent === null)
    throw new TypeError(
      `createBridge needs \`${option}\`: pass an ADK agent, for example an LlmAgent.`,
    )
  if (isObject(agent) && 'rootAgent' in agent && !isRunnable(agent))
    throw new TypeError(
      `createBridge: \`${option}\` is an App. Pass \`${option}: app.rootAgent\`, and its plugins and name as \`plugins\` and \`appName\`.`,
    )
  if (!isRunnable(agent))
    throw new TypeError(
      `createBridge: \`${option}\` is ${describeValue(agent)}. Pass an ADK agent, for example an LlmAgent, or a Workflow.`,
    )
}

function isRunnable(agent: unknown): boolean {
  try {
    // ADK throws if its Runner cannot run this value.
    asRunnableRoot(agent as Parameters<typeof asRunnableRoot>[0])
    return true
  } catch {
    return false
  }
}

const RunConfig = z.strictObject({
  maxLlmCalls: AtLeastOne.optional(),
  saveInputBlobsAsArtifacts: z.boolean({ error: 'true or false' }).optional(),
} satisfies Record<keyof TurnRunConfig, z.ZodType>)

const Context = z.strictObject({
  schema: z
    .custom((value) => isObject(value) && typeof value['safeParse'] === 'function', {
      error: 'a zod schema',
    })
    .optional(),
  toState: Method,
} satisfies Record<keyof ContextOptions, z.ZodType>)

const Retention = z.strictObject({
  chatsMs: Deadline.optional(),
  auditMs: Deadline.optional(),
  intervalMs: Interval.optional(),
} satisfies Record<keyof RetentionOptions, z.ZodType>)

const Approvals = z.custom((value) => typeof value === 'function' || isRecord(value), {
  error: 'a function, or an object with a verdict for each tool',
})

const Origin = z.string({ error: 'an origin' }).superRefine((value, context) => {
  const origin = readOrigin(value)
  if (origin.error !== undefined) context.addIssue({ code: 'custom', message: origin.error })
})

const Options = {
  agent: z.unknown().optional(),
  agents: z.unknown().optional(),
  chooseAgent: Method.optional(),
  appName: z
    .string({ error: 'a string' })
    .min(1, { error: 'a string that is not empty' })
    .optional(),
  store: Service.optional(),
  sessionService: Service.optional(),
  authenticate: Method.optional(),
  allowedOrigins: z.array(Origin, { error: 'a list of origins' }).optional(),
  allowedHosts: z
    .union([z.literal('any'), z.array(z.string())], { error: "a list of host names, or 'any'" })
    .optional(),
  trustedProxies: z
    .union([Count, z.array(z.string().refine(isNetwork))], {
      error: 'the number of proxies, or a list of addresses and networks like "10.0.0.0/8"',
    })
    .optional(),
  basePath: z
    .string({ error: 'a path' })
    .regex(/^(?:\/.*[^/])?$/, {
      error: 'a path that starts with a slash and does not end with one, like "/api/agent"',
    })
    .optional(),
  disconnectGraceMs: Duration.optional(),
  drainMs: Duration.optional(),
  whenTampered: z.enum(['report', 'refuse'], { error: "'report' or 'refuse'" }).optional(),
  whileRunning: z.enum(['refuse', 'queue'], { error: "'refuse' or 'queue'" }).optional(),
  approvals: Approvals.optional(),
  policyVersion: z.string({ error: 'a string' }).min(1).max(200).optional(),
  approvalDeadlineMs: ApprovalDeadline.optional(),
  whenShortened: z.enum(['keep', 'rewind'], { error: "'keep' or 'rewind'" }).optional(),
  whilePending: z.enum(['keep', 'cancel'], { error: "'keep' or 'cancel'" }).optional(),
  mayCompleteCalls: Method.optional(),
  mayReadAudit: Method.optional(),
  namePrincipal: Method.optional(),
  context: Context.optional(),
  retention: Retention.optional(),
  exposeState: Method.optional(),
  exposeToolErrors: z.boolean({ error: 'true or false' }).optional(),
  recordModelCalls: z
    .union([z.boolean(), z.literal('with-authentication')], {
      error: "true, false or 'with-authentication'",
    })
    .optional(),
  runConfig: RunConfig.optional(),
  limits: LimitsSchema.optional(),
  onError: Method.optional(),
  onChunk: Method.optional(),
  log: Method.optional(),
  ...AgentServicesSchema,
} satisfies Record<
  Exclude<keyof BridgeOptions | keyof SeveralAgentsOptions, keyof ModuleOptions>,
  z.ZodType
>

/** Returns the names that the value at a path may have. */
function listNames(schema: z.ZodObject, [key]: readonly PropertyKey[]): string[] {
  if (key === undefined) return Object.keys(schema.shape)
  const option: unknown = schema.shape[String(key)]
  const value = option instanceof z.ZodOptional ? option.unwrap() : option
  return value instanceof z.ZodObject ? Object.keys(value.shape) : []
}

function describeIssue(issue: z.core.$ZodIssue, { schema, path: outer = [] }: Checked): string {
  const path = [...outer, ...issue.path].join('.')
  if (issue.code === 'unrecognized_keys') {
    const [key = ''] = issue.keys
    const name = path === '' ? key : `${path}.${key}`
    return `there is no option \`${name}\`.${suggestName(key, listNames(schema, issue.path))}`
  }
  if (issue.code === 'custom' && issue.path[0] === 'allowedOrigins') return issue.message
  return outer.length > 0
    ? `\`${path}\`: ${issue.message}.`
    : `\`${path}\` must be ${issue.message}.`
}

function describeValue(value: unknown): string {
  return typeof value === 'object' ? 'an object that ADK cannot run' : `a ${typeof value}`
}
