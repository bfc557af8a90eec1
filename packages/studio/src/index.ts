export { createPage, PAGE_DIR, SECURITY_HEADERS } from './server/page.ts'
export { readJsonBody, toAuthenticateRequest, writeJson } from './server/requests.ts'
export {
  createStudioListener,
  identify,
  type StudioListeners,
  type StudioOptions,
  type StudioReader,
} from './server/studio-listener.ts'
export {
  type AgentInfo,
  INSTANCE_HEADER,
  ModelPrices,
  type StudioDescription,
  StudioInfo,
  type StudioProblem,
  type ToolInfo,
} from './studio-info.ts'
