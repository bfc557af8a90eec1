import type { NodeContext, Session } from '@google/adk'

type Scheduler = NonNullable<NodeContext['scheduler']>

/** The schedulers of ADK, by those that `viewRuns` has put in their place. */
const originals = new WeakMap<Scheduler, Scheduler>()

/**
 * Lets ADK read from a view of the session which nodes a function has run with `runNode`. The function itself reads the session as it
 * is.
 */
export function viewRuns(context: NodeContext, view: () => Session): void {
  const { scheduler } = context
  if (scheduler) context.scheduler = viewScheduler(scheduler, view)
}

/** Does the same for the entry function of a workflow, whose context gets its scheduler only when the workflow starts. */
export function viewEntryRuns(context: NodeContext, view: () => Session): void {
  let scheduler: Scheduler | undefined
  let isStarting = false
  Object.defineProperties(context, {
    scheduler: {
      get: () => scheduler,
      set: (given: Scheduler) => {
        scheduler = viewScheduler(given, view)
        isStarting = true
      },
    },
    session: {
      get: () => {
        // ADK reads the answers to questions once, before it calls the function.
        const { session } = context.invocationContext
        if (!isStarting) return session
        isStarting = false
        return view()
      },
    },
  })
}

function viewScheduler(given: Scheduler, view: () => Session): Scheduler {
  const scheduler = originals.get(given) ?? given
  const viewing: Scheduler = {
    schedule: (context, ...rest) => scheduler.schedule(withSession(context, view), ...rest),
  }
  originals.set(viewing, scheduler)
  return viewing
}

/** Returns the context with another session. ADK writes the outcome of nodes to the context, so it is not a copy. */
function withSession(context: NodeContext, view: () => Session): NodeContext {
  return new Proxy(context, {
    get(target, name) {
      return name === 'session' ? view() : (Reflect.get(target, name) as unknown)
    },
  })
}
