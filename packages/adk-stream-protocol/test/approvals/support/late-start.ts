import { BasePlugin } from '@google/adk'

/** Does nothing; but that it might end a run before its tools are called keeps these from being started early (AP64). */
export class LateStart extends BasePlugin {
  override async beforeRunCallback(): Promise<undefined> {
    return undefined
  }
}
