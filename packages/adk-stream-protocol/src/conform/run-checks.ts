import { CHECKS } from './checks.ts'
import type { ConformClient } from './conform-chat.ts'
import type { Backend } from './trial.ts'
import { Failure, Skipped, Trial } from './trial.ts'

export interface CheckResult {
  readonly client: string
  readonly name: string
  readonly title: string
  readonly result: 'passed' | 'failed' | 'skipped'
  readonly reason?: string
}

/** Makes all checks with one client, or those that are named. */
export async function runChecks(
  client: ConformClient,
  backend: Backend,
  only: readonly string[] = [],
): Promise<CheckResult[]> {
  const results: CheckResult[] = []
  for (const { name, title, check } of CHECKS) {
    if (only.length > 0 && !only.includes(name)) continue
    const about = { client: client.name, name, title }
    try {
      await check(new Trial(client, backend))
      results.push({ ...about, result: 'passed' })
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown)
      if (thrown instanceof Skipped) results.push({ ...about, result: 'skipped', reason })
      else if (thrown instanceof Failure) results.push({ ...about, result: 'failed', reason })
      // A client that throws, or a backend that cannot be reached.
      else results.push({ ...about, result: 'failed', reason: `The check broke off: ${reason}` })
    }
  }
  return results
}
