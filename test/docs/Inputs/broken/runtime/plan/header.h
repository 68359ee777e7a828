inline constexpr uint32_t kPlanFormatVersion = 7;
