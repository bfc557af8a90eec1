import { BasePlugin } from '@google/adk'

/**
 * A plugin without the experimental callbacks of ADK 2.0.0. `BasePlugin` implements them with a warning that ADK logs when it
 * calls them, so that every server with a plugin of ours would start with it.
 */
export class QuietPlugin extends BasePlugin {
  override beforeToolSelection(
    _params: Parameters<BasePlugin['beforeToolSelection']>[0],
  ): ReturnType<BasePlugin['beforeToolSelection']> {
    return Promise.resolve(undefined)
  }

  override beforeContextCompaction(): Promise<void> {
    return Promise.resolve()
  }

  override afterContextCompaction(): Promise<void> {
    return Promise.resolve()
  }
}
