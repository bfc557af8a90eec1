import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

import { App } from './app.tsx'
import { ConversationSettings } from './conversation/conversation-settings.tsx'
import { LanguageProvider } from './i18n/language.tsx'
import { followTheme } from './settings/theme.ts'

followTheme()

const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <LanguageProvider>
        <ConversationSettings>
          <App />
        </ConversationSettings>
      </LanguageProvider>
    </StrictMode>,
  )
}
