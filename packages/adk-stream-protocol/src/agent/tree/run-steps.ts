// oxlint-disable typescript/no-deprecated -- These agents are deprecated in favour of Workflow, and in use.
import { randomUUID } from 'node:crypto'

import type { BaseAgent, Event, InvocationContext, LoopAgent, PluginManager } from '@google/adk'
import {
  createEvent,
  InvocationContext as Context,
  isBaseAgent,
  isLoopAgent,
  isParallelAgent,
} from '@google/adk'

import type { ProgressNote, StepNote } from '../events/event-notes.ts'
import { readNotes, writeNotes } from '../events/event-notes.ts'
import type { ResumePoint } from './find-steps.ts'
import { replaceRunMethod } from './run-methods.ts'
import { findProgress, findResumePoints, isStepWaiting } from './find-steps.ts'
import type { FindMessageId } from './step-agents.ts'
import { controlled, findMessageId, isStepAgent, managers } from './step-agents.ts'

/**
 * Makes a `SequentialAgent`, `LoopAgent` or `ParallelAgent` wait for the calls of its steps. ADK 2.0.0 starts the next step or
 * iteration while a call waits, and resumes only the agent that made the call.
 *
 * Each event that passes such an agent gets a note with its step. So the stored session says where a turn continues, on any
 * server. The agents of the application keep their identity: only runs of the bridge use these functions.
 */
export function controlSteps(root: unknown, manager: PluginManager, find: FindMessageId): void {
  managers.set(manager, find)
  for (const agent of listAgents(root)) if (isStepAgent(agent)) replaceRun(agent)
}

/**
 * Assigns a run with responses to the outermost agent whose steps wait for them. Returns false if the calls are not part of a step.
 */
export function resumeSteps(context: InvocationContext, messageId: string): boolean {
  const { session, agent } = context
  const find = (name: string): BaseAgent | undefined => agent?.rootAgent.findAgent(name)
  const isParallel = (name: string): boolean => isParallelAgent(find(name))
  const points = findResumePoints(session.events, messageId, isParallel)
  const found = find(points[0]?.steps[0]?.agent ?? '')
  if (!found || !isStepAgent(found)) return false
  context.agent = toResumed(found, { points, depth: 0, messageId })
  return true
}

/** What a resumed agent continues with. */
interface Resume {
  readonly points: readonly ResumePoint[]
  /** The position of the agent in the steps of the points. */
  readonly depth: number
  readonly messageId: string
}

type Events = AsyncGenerator<Event, void>

function replaceRun(agent: BaseAgent): void {
  if (controlled.has(agent)) return
  controlled.add(agent)
  replaceRunMethod<(context: InvocationContext) => Events>(
    agent,
    'runAsyncImpl',
    (run) => (context) => {
      const messageId = findMessageId(context)
      if (messageId === undefined) return run.call(agent, context)
      return runSteps(agent, context, messageId)
    },
  )
}

/** Returns an agent that continues with its waiting steps. Its callbacks before the run were called when it started. */
function toResumed(agent: BaseAgent, resume: Resume): BaseAgent {
  const runAsyncImpl = (context: InvocationContext): Events =>
    runSteps(agent, context, resume.messageId, resume)
  return Object.create(agent, {
    beforeAgentCallback: { value: [] },
    runAsyncImpl: { value: runAsyncImpl },
  }) as BaseAgent
}

function runSteps(
  agent: BaseAgent,
  context: InvocationContext,
  messageId: string,
  resume?: Resume,
): Events {
  const steps = new Steps(agent, context, { messageId, isResumed: resume !== undefined })
  if (isLoopAgent(agent)) return runLoop(agent, steps, resume)
  return isParallelAgent(agent)
    ? runParallel(agent, steps, resume)
    : runSequence(agent, steps, resume)
}

async function* runSequence({ subAgents }: BaseAgent, steps: Steps, resume?: Resume): Events {
  let from = resume
  for (const subAgent of subAgents.slice(steps.find(resume))) {
    if (!from) yield steps.start(subAgent)
    yield* steps.run(subAgent, from)
    from = undefined
    if (steps.isAborted || steps.pause()) return
  }
  yield steps.end()
}

async function* runLoop(
  { subAgents, maxIterations }: LoopAgent,
  steps: Steps,
  resume?: Resume,
): Events {
  let from = resume
  let first = steps.find(resume)
  const start = resume?.points[0]?.steps[resume.depth]?.iteration ?? 0
  for (let iteration = start; iteration < maxIterations; iteration += 1) {
    for (const subAgent of subAgents.slice(first)) {
      let isOver = false
      if (!from) yield steps.start(subAgent, iteration)
      for await (const event of steps.run(subAgent, from, { iteration })) {
        if (steps.isAborted) return
        yield event
        if (event.actions.escalate === true) isOver = true
      }
      from = undefined
      if (steps.isAborted || steps.pause()) return
      if (!isOver) continue
      yield steps.end()
      return
    }
    first = 0
  }
  yield steps.end()
}

async function* runParallel({ subAgents }: BaseAgent, steps: Steps, resume?: Resume): Events {
  const runs = subAgents.flatMap((subAgent) => {
    const points = resume?.points.filter(
      (point) => point.steps[resume.depth]?.step === subAgent.name,
    )
    if (points?.length === 0) return []
    return steps.run(subAgent, resume && points && { ...resume, points }, { isBranch: true })
  })
  if (!resume) yield steps.start()
  for await (const event of mergeRuns(runs)) {
    if (steps.isAborted) return
    yield event
  }
  if (!steps.isAborted && !steps.pause()) yield steps.end()
}

interface StepRun {
  readonly messageId: string
  readonly isResumed: boolean
}

function toKind(agent: BaseAgent): Pick<ProgressNote, 'kind' | 'maxIterations'> {
  if (isParallelAgent(agent)) return { kind: 'parallel' }
  if (!isLoopAgent(agent)) return { kind: 'sequence' }
  const { maxIterations } = agent
  return { kind: 'loop', ...(maxIterations < Number.MAX_SAFE_INTEGER && { maxIterations }) }
}

/** The steps of one run of an agent. */
class Steps {
  readonly #agent: BaseAgent
  readonly #context: InvocationContext
  readonly #messageId: string

  #progress: ProgressNote

  constructor(agent: BaseAgent, context: InvocationContext, run: StepRun) {
    this.#agent = agent
    this.#context = context
    this.#messageId = run.messageId
    const { name, subAgents } = agent
    const last = run.isResumed
      ? findProgress(context.session.events, run.messageId, name)
      : undefined
    this.#progress = last ?? {
      id: randomUUID(),
      agent: name,
      ...toKind(agent),
      steps: subAgents.map((subAgent) => ({ name: subAgent.name, state: 'pending' })),
    }
  }

  /** Returns the event that a step has started, after the end of those before it. Without a step, all of them start. */
  start(subAgent?: BaseAgent, iteration?: number): Event {
    const { subAgents } = this.#agent
    const current = subAgent ? subAgents.indexOf(subAgent) : undefined
    const steps = subAgents.map(({ name }, index) => {
      if (current === undefined || index === current) return { name, state: 'running' as const }
      return { name, state: index < current ? ('done' as const) : ('pending' as const) }
    })
    const loop = iteration === undefined ? {} : { iteration: iteration + 1 }
    return this.#report({ ...this.#progress, ...loop, steps })
  }

  /** Returns the event that all steps have ended. */
  end(): Event {
    const steps = this.#progress.steps.map(({ name, state }) => ({
      name,
      // A loop may end before its last step.
      state: state === 'pending' ? state : ('done' as const),
    }))
    return this.#report({ ...this.#progress, steps })
  }

  #report(progress: ProgressNote): Event {
    this.#progress = progress
    const { invocationId, branch } = this.#context
    return createEvent({
      author: this.#agent.name,
      invocationId,
      customMetadata: writeNotes({ progress, messageId: this.#messageId }),
      ...(branch !== undefined && { branch }),
    })
  }

  get isAborted(): boolean {
    return this.#context.abortSignal?.aborted === true
  }

  /** Returns the index of the step to continue with. */
  find(resume: Resume | undefined): number {
    if (!resume) return 0
    const { name, subAgents } = this.#agent
    const step = resume.points[0]?.steps[resume.depth]?.step ?? ''
    const index = subAgents.findIndex((subAgent) => subAgent.name === step)
    if (index < 0) throw new Error(`The agent ${name} no longer has the step ${step}.`)
    return index
  }

  /** Runs a step, or the agent in it that a resumed run continues with. Adds the step to the notes of its events. */
  async *run(
    subAgent: BaseAgent,
    resume: Resume | undefined,
    { iteration, isBranch = false }: { iteration?: number; isBranch?: boolean } = {},
  ): Events {
    const step: StepNote = {
      agent: this.#agent.name,
      step: subAgent.name,
      ...(iteration !== undefined && { iteration }),
    }
    const context = isBranch ? toBranch(this.#context, step) : this.#context
    const run = resume ? this.#findResumed(resume) : subAgent
    for await (const event of run.runAsync(context)) yield addStep(event, step)
  }

  /** Ends the run of the agent if a call of its steps waits. Returns whether one does. */
  pause(): boolean {
    const { session } = this.#context
    if (!isStepWaiting(session.events, this.#messageId, this.#agent.name)) return false
    // Prevents the callbacks after the run, which is not over.
    this.#context.endInvocation = true
    return true
  }

  /** Returns the agent that made the waiting call, or the next agent with steps on the path to it. */
  #findResumed({ points, depth, messageId }: Resume): BaseAgent {
    const [point] = points
    const inner = point?.steps[depth + 1]?.agent
    const name = inner ?? point?.agent ?? ''
    const found = this.#agent.rootAgent.findAgent(name)
    if (!found) throw new Error(`The agent ${name}, which made the call, no longer exists.`)
    return inner === undefined ? found : toResumed(found, { points, depth: depth + 1, messageId })
  }
}

/** Returns the context of a branch of a `ParallelAgent`, as ADK creates it. */
function toBranch(context: InvocationContext, { agent, step }: StepNote): InvocationContext {
  const branch = new Context(context)
  branch.branch = context.branch ? `${context.branch}.${agent}.${step}` : `${agent}.${step}`
  return branch
}

/** Adds a step to the notes of an event, before the steps that are part of it. */
function addStep(event: Event, step: StepNote): Event {
  if (event.partial) return event
  const { steps = [] } = readNotes(event)
  const customMetadata = writeNotes({ steps: [step, ...steps] }, event.customMetadata)
  if (Object.isFrozen(event)) return { ...event, customMetadata }
  event.customMetadata = customMetadata
  return event
}

/** Yields the events of several runs as they arrive. Each run continues when its event was taken. */
async function* mergeRuns(runs: readonly Events[]): Events {
  const next = async (run: Events) => ({ run, result: await run.next() })
  const pending = new Map(runs.map((run) => [run, next(run)]))
  while (pending.size > 0) {
    const { run, result } = await Promise.race(pending.values())
    if (result.done === true) {
      pending.delete(run)
      continue
    }
    yield result.value
    pending.set(run, next(run))
  }
}

/** Returns an agent and all its sub-agents. */
function listAgents(root: unknown): BaseAgent[] {
  return isBaseAgent(root) ? [root, ...root.subAgents.flatMap(listAgents)] : []
}
