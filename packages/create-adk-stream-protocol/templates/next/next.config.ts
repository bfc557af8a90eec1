import type { NextConfig } from 'next'

const nextConfig: NextConfig = {
  serverExternalPackages: ['@google/adk', 'libsql'],
}

export default nextConfig
