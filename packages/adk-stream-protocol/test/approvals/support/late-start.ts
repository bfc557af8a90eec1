import { BasePlugin } from '@google/adk'

/** Does nothing. Because it could end a run before its tools are called, they are not started early (AP62). */
export class LateStart extends BasePlugin {
  override async beforeRunCallback(): Promise<undefined> {
    return undefined
  }
}
