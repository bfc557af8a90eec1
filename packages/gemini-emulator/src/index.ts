export { startEmulator } from './emulator.ts'
export type { Emulator, EmulatorOptions } from './emulator.ts'
export type { Speech, Synthesize, Transcribe } from './emulator-core.ts'
export { EmulatorError } from './emulator-error.ts'
export type { EmulatorErrorCode } from './emulator-error.ts'
export type { LiveControls } from './live/attach-live.ts'
export type { LiveOptions } from './live/live-options.ts'
export type { LiveSession } from './live/live-session.ts'
export type { RecordedRequest } from './request-log.ts'
export { firstOf } from './responders/responder.ts'
export type { Action, CallMode, Prompt, Responder } from './responders/responder.ts'
export { loadScenario, scenarioResponder } from './responders/scenario.ts'
export type { Scenario } from './responders/scenario.ts'
export type { StepInput } from './responders/scenario-step.ts'
export { scriptResponder } from './responders/script-responder.ts'
export { toolResponder } from './responders/tool-responder.ts'
export type {
  Content,
  FunctionCall,
  FunctionDeclaration,
  FunctionResponse,
  Part,
} from './wire/content.ts'
